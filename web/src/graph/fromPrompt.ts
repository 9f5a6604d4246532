// A document out of an API prompt, which has no positions: nodes are laid out in columns.

import { DEFAULT_WIDTH } from "./commands.ts";
import type { Definitions } from "./definitions.ts";
import { asObject, asString, isObject, type Json, type JsonObject } from "./json.ts";
import { arrange } from "./layout.ts";
import {
  emptyDocument,
  type GraphNode,
  type Link,
  type SavedSlot,
  type WorkflowDocument,
} from "./records.ts";
import { outputType } from "./sockets.ts";
import { withDefaults } from "./widgets.ts";

export function isPrompt(value: unknown): value is JsonObject {
  const nodes = isObject(value) ? Object.values(value) : [];
  return nodes.length > 0 && nodes.every((node) => isObject(node) && typeof node.class_type === "string");
}

export function fromPrompt(prompt: JsonObject, definitions: Definitions, freshId: string): WorkflowDocument {
  const entries = Object.entries(prompt).map(
    ([id, node]) => [id.replaceAll(":", "_"), asObject(node)] as const,
  );
  const nodes = Object.fromEntries(entries.map(([id, node]) => [id, readNode(id, node, definitions)]));
  const links = readLinks(entries, nodes);
  const largest = Math.max(0, ...Object.keys(nodes).map(Number).filter(Number.isFinite));
  const document = {
    ...emptyDocument(freshId),
    nodes,
    lastNodeId: largest,
    lastLinkId: Object.keys(links).length,
  };
  const typed = { ...document, links };
  const withTypes = Object.values(links).map((link) => ({
    ...link,
    type: outputType(typed, definitions, link.source, link.sourceSlot),
  }));
  const linked = { ...document, links: Object.fromEntries(withTypes.map((link) => [link.id, link])) };
  return arrange().apply(linked, definitions);
}

function isLink(value: Json | undefined): value is readonly [string, number] {
  return (
    Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "number"
  );
}

function readNode(id: string, saved: JsonObject, definitions: Definitions): GraphNode {
  const type = asString(saved.class_type);
  const definition = definitions[type];
  const values: Record<string, Json> = {};
  for (const [name, value] of Object.entries(asObject(saved.inputs))) {
    if (value !== undefined && !isLink(value))
      values[name] = isObject(value) ? (value.__value__ ?? value) : value;
  }
  const title = asString(asObject(saved._meta).title);
  return {
    id,
    type,
    title: title === "" || title === definition?.displayName || title === type ? null : title,
    x: 0,
    y: 0,
    width: DEFAULT_WIDTH,
    height: 0,
    mode: 0,
    isCollapsed: false,
    values: definition ? withDefaults(definition, values) : {},
    inputs: definition ? [] : linkedSlots(saved),
    outputs: [],
    rest: definition ? {} : { widgets_values: Object.values(values) },
  };
}

function linkedSlots(saved: JsonObject): SavedSlot[] {
  const names = Object.entries(asObject(saved.inputs)).filter(([, value]) => isLink(value));
  return names.map(([name]) => ({ name, type: "*", label: null, widget: null }));
}

function readLinks(
  entries: ReadonlyArray<readonly [string, JsonObject]>,
  nodes: Readonly<Record<string, GraphNode>>,
): Record<string, Link> {
  const links: Record<string, Link> = {};
  for (const [target, saved] of entries) {
    for (const [targetInput, value] of Object.entries(asObject(saved.inputs))) {
      if (!isLink(value)) continue;
      const source = value[0].replaceAll(":", "_");
      const id = String(Object.keys(links).length + 1);
      if (nodes[source]) {
        links[id] = { id, source, sourceSlot: value[1], target, targetInput, type: "*", parentId: null };
      }
    }
  }
  return links;
}
