// Every edit of a workflow. A command is a label and a pure function of the document; nothing else changes it.

import { PRIMITIVE } from "./builtin.ts";
import { canConnect, type Endpoints, firstInputFor, firstOutputFor } from "./connections.ts";
import type { Definitions } from "./definitions.ts";
import type { Json } from "./json.ts";
import { type GraphNode, type Link, linkInto, linksOf, type WorkflowDocument } from "./records.ts";
import { inputSockets, outputType } from "./sockets.ts";
import { initialValues, withDefaults } from "./widgets.ts";

export interface Command {
  readonly label: string;
  readonly mergeKey?: string;
  readonly apply: (document: WorkflowDocument, definitions: Definitions) => WorkflowDocument;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export const DEFAULT_WIDTH = 270;
export const MIN_WIDTH = 160;

function withNode(
  document: WorkflowDocument,
  id: string,
  change: (node: GraphNode) => GraphNode,
): WorkflowDocument {
  const node = document.nodes[id];
  return node ? { ...document, nodes: { ...document.nodes, [id]: change(node) } } : document;
}

export function newNode(id: string, type: string, at: Point, definitions: Definitions): GraphNode {
  const definition = definitions[type];
  return {
    id,
    type,
    title: null,
    x: Math.round(at.x),
    y: Math.round(at.y),
    width: DEFAULT_WIDTH,
    height: 0,
    mode: 0,
    isCollapsed: false,
    values: definition ? initialValues(definition) : {},
    inputs: [],
    outputs: [],
    rest: {},
  };
}

/** The id that the next added node gets. */
export function nextNodeId(document: WorkflowDocument): string {
  return String(document.lastNodeId + 1);
}

export function addNode(type: string, at: Point): Command {
  return {
    label: "Add node",
    apply: (document, definitions) => {
      const id = nextNodeId(document);
      const nodes = { ...document.nodes, [id]: newNode(id, type, at, definitions) };
      return { ...document, nodes, lastNodeId: document.lastNodeId + 1 };
    },
  };
}

/** Adds a node and ties it to a socket that a link was dragged from. */
export function addConnectedNode(type: string, at: Point, from: LooseEnd): Command {
  return {
    label: "Add node",
    apply: (document, definitions) => {
      const id = nextNodeId(document);
      const added = addNode(type, at).apply(document, definitions);
      const node = added.nodes[id];
      const ends = node && loneEnds(added, definitions, node, from);
      return ends ? connect(ends).apply(added, definitions) : added;
    },
  };
}

export type LooseEnd =
  | { readonly kind: "output"; readonly node: string; readonly slot: number }
  | { readonly kind: "input"; readonly node: string; readonly input: string };

export function looseEndType(document: WorkflowDocument, definitions: Definitions, end: LooseEnd): string {
  if (end.kind === "output") return outputType(document, definitions, end.node, end.slot);
  const node = document.nodes[end.node];
  if (!node) return "*";
  return inputSockets(node, definitions).find((input) => input.name === end.input)?.type ?? "*";
}

function loneEnds(
  document: WorkflowDocument,
  definitions: Definitions,
  node: GraphNode,
  from: LooseEnd,
): Endpoints | null {
  const type = looseEndType(document, definitions, from);
  if (from.kind === "output") {
    const targetInput = firstInputFor(document, definitions, node, type);
    return targetInput === null
      ? null
      : { source: from.node, sourceSlot: from.slot, target: node.id, targetInput };
  }
  const sourceSlot = firstOutputFor(definitions, node, type);
  return sourceSlot === null
    ? null
    : { source: node.id, sourceSlot, target: from.node, targetInput: from.input };
}

export function removeNodes(ids: ReadonlySet<string>): Command {
  return {
    label: ids.size === 1 ? "Delete node" : `Delete ${ids.size} nodes`,
    apply: (document) => ({
      ...document,
      nodes: Object.fromEntries(Object.entries(document.nodes).filter(([id]) => !ids.has(id))),
      links: Object.fromEntries(
        Object.entries(document.links).filter(([, link]) => !ids.has(link.source) && !ids.has(link.target)),
      ),
    }),
  };
}

export function removeLinks(ids: ReadonlySet<string>): Command {
  return {
    label: "Delete link",
    apply: (document) => ({
      ...document,
      links: Object.fromEntries(Object.entries(document.links).filter(([id]) => !ids.has(id))),
    }),
  };
}

/** Connects where that is allowed; an input has one link, so a second replaces the first. */
export function connect(ends: Endpoints): Command {
  return {
    label: "Connect",
    apply: (document, definitions) => {
      const before = linkInto(document, ends.target, ends.targetInput);
      const cleared = before ? removeLinks(new Set([before.id])).apply(document, definitions) : document;
      if (!canConnect(cleared, definitions, ends).isAllowed) return document;
      const id = String(document.lastLinkId + 1);
      const type = outputType(cleared, definitions, ends.source, ends.sourceSlot);
      const link: Link = { id, ...ends, type, parentId: null };
      const connected = {
        ...cleared,
        links: { ...cleared.links, [id]: link },
        lastLinkId: document.lastLinkId + 1,
      };
      return document.nodes[ends.source]?.type === PRIMITIVE ? adoptValue(connected, ends) : connected;
    },
  };
}

/** A value box that has no value yet takes over that of the widget it is tied to. */
function adoptValue(document: WorkflowDocument, ends: Endpoints): WorkflowDocument {
  const value = document.nodes[ends.target]?.values[ends.targetInput];
  return withNode(document, ends.source, (node) =>
    node.values.value !== undefined || value === undefined
      ? node
      : { ...node, values: { ...node.values, value } },
  );
}

/** Takes one end of a link elsewhere, in one step. */
export function reconnect(linkId: string, ends: Endpoints): Command {
  return {
    label: "Move link",
    apply: (document, definitions) => {
      const loose = removeLinks(new Set([linkId])).apply(document, definitions);
      const connected = connect(ends).apply(loose, definitions);
      return connected === loose ? document : connected;
    },
  };
}

export function moveNodes(positions: ReadonlyMap<string, Point>): Command {
  return {
    label: "Move",
    apply: (document) => {
      const nodes = { ...document.nodes };
      for (const [id, { x, y }] of positions) {
        const node = nodes[id];
        if (node) nodes[id] = { ...node, x: Math.round(x), y: Math.round(y) };
      }
      return { ...document, nodes };
    },
  };
}

export function resizeNode(
  id: string,
  box: Point & { readonly width: number; readonly height: number },
): Command {
  return {
    label: "Resize",
    apply: (document) =>
      withNode(document, id, (node) => ({
        ...node,
        x: Math.round(box.x),
        y: Math.round(box.y),
        width: Math.max(MIN_WIDTH, Math.round(box.width)),
        height: Math.max(0, Math.round(box.height)),
      })),
  };
}

export function setValue(id: string, name: string, value: Json): Command {
  return {
    label: `Change ${name}`,
    mergeKey: `value ${id} ${name}`,
    apply: (document, definitions) =>
      withNode(document, id, (node) => {
        const definition = definitions[node.type];
        const values = { ...node.values, [name]: value };
        return { ...node, values: definition ? withDefaults(definition, values) : values };
      }),
  };
}

export function setTitle(id: string, title: string): Command {
  return {
    label: "Rename node",
    apply: (document) => withNode(document, id, (node) => ({ ...node, title: title.trim() || null })),
  };
}

/** Sets the mode on all, or back to normal when all have it already. */
export function toggleMode(ids: ReadonlySet<string>, mode: number): Command {
  return {
    label: mode === 2 ? "Mute" : "Bypass",
    apply: (document) => {
      const chosen = [...ids].flatMap((id) => document.nodes[id] ?? []);
      const next = chosen.every((node) => node.mode === mode) ? 0 : mode;
      const changed = Object.fromEntries(chosen.map((node) => [node.id, { ...node, mode: next }]));
      return { ...document, nodes: { ...document.nodes, ...changed } };
    },
  };
}

export function toggleCollapsed(ids: ReadonlySet<string>): Command {
  return {
    label: "Collapse",
    apply: (document) => {
      const chosen = [...ids].flatMap((id) => document.nodes[id] ?? []);
      const isCollapsed = !chosen.every((node) => node.isCollapsed);
      const changed = Object.fromEntries(chosen.map((node) => [node.id, { ...node, isCollapsed }]));
      return { ...document, nodes: { ...document.nodes, ...changed } };
    },
  };
}

/** Shows or hides the inputs that a node calls advanced; files keep it under ComfyUI's key. */
export function toggleAdvanced(id: string): Command {
  return {
    label: "More options",
    apply: (document) =>
      withNode(document, id, (node) => ({
        ...node,
        rest: { ...node.rest, showAdvanced: node.rest.showAdvanced !== true },
      })),
  };
}

/** Puts copied records in under new ids, with the links among them. */
export function paste(fragment: Pick<WorkflowDocument, "nodes" | "links">, offset: Point): Command {
  return {
    label: "Paste",
    apply: (document) => {
      const ids = new Map(
        Object.keys(fragment.nodes).map((id, index) => [id, String(document.lastNodeId + 1 + index)]),
      );
      const nodes = Object.values(fragment.nodes).map((node) => ({
        ...node,
        id: ids.get(node.id) ?? node.id,
        x: Math.round(node.x + offset.x),
        y: Math.round(node.y + offset.y),
      }));
      const links = Object.values(fragment.links).flatMap((link, index) => {
        const source = ids.get(link.source);
        const target = ids.get(link.target);
        if (source === undefined || target === undefined) return [];
        return { ...link, id: String(document.lastLinkId + 1 + index), source, target, parentId: null };
      });
      return {
        ...document,
        nodes: { ...document.nodes, ...Object.fromEntries(nodes.map((node) => [node.id, node])) },
        links: { ...document.links, ...Object.fromEntries(links.map((link) => [link.id, link])) },
        lastNodeId: document.lastNodeId + ids.size,
        lastLinkId: document.lastLinkId + Object.keys(fragment.links).length,
      };
    },
  };
}

/** The chosen nodes and the links among them. */
export function copyNodes(
  document: WorkflowDocument,
  ids: ReadonlySet<string>,
): Pick<WorkflowDocument, "nodes" | "links"> {
  const nodes = Object.fromEntries(Object.entries(document.nodes).filter(([id]) => ids.has(id)));
  const links = [...ids]
    .flatMap((id) => linksOf(document, id))
    .filter((link) => ids.has(link.source) && ids.has(link.target));
  return { nodes, links: Object.fromEntries(links.map((link) => [link.id, link])) };
}
