// Positions for nodes that came without any: columns by depth, each column from the top.

import { type Command, DEFAULT_WIDTH, moveNodes, type Point } from "./commands.ts";
import type { Definitions } from "./definitions.ts";
import type { GraphNode, WorkflowDocument } from "./records.ts";
import { inputSockets, outputSockets } from "./sockets.ts";
import { widgetsOf } from "./widgets.ts";
import { executionOrder } from "./writeWorkflow.ts";

const TITLE = 36;
const ROW = 28;
const TEXT_ROWS = 4;
const GAP_X = 70;
const GAP_Y = 60;

/** About how high a node will be drawn. */
export function estimatedHeight(node: GraphNode, definitions: Definitions): number {
  const definition = definitions[node.type];
  const sockets = Math.max(
    inputSockets(node, definitions).filter((input) => !input.isWidget).length,
    outputSockets(node, definitions).length,
  );
  const widgets = definition ? widgetsOf(definition, node.values) : [];
  const rows = widgets.reduce(
    (sum, widget) => sum + (widget.input.options.multiline === true ? TEXT_ROWS : 1),
    0,
  );
  const picture = definition?.isOutput ? 220 : 0;
  return Math.max(node.height, TITLE + (sockets + rows) * ROW + picture);
}

export function arrange(): Command {
  return {
    label: "Arrange",
    apply: (document, definitions) => moveNodes(arranged(document, definitions)).apply(document, definitions),
  };
}

function arranged(document: WorkflowDocument, definitions: Definitions): Map<string, Point> {
  const depth = new Map<string, number>();
  const links = Object.values(document.links);
  const order = [...executionOrder(document)].sort(([, left], [, right]) => left - right).map(([id]) => id);
  for (const id of order) {
    const sources = links.filter((link) => link.target === id).map((link) => depth.get(link.source) ?? 0);
    depth.set(id, sources.length === 0 ? 0 : Math.max(...sources) + 1);
  }
  const positions = new Map<string, Point>();
  const heights = new Map<number, number>();
  for (const id of order) {
    const node = document.nodes[id];
    if (!node) continue;
    const column = depth.get(id) ?? 0;
    const y = heights.get(column) ?? 0;
    positions.set(id, { x: column * (DEFAULT_WIDTH + GAP_X), y });
    heights.set(column, y + estimatedHeight(node, definitions) + GAP_Y);
  }
  return positions;
}
