// A document as a workflow file of version 0.4, which every ComfyUI reads.

import type { Definitions } from "./definitions.ts";
import { asObject, type Json, type JsonObject } from "./json.ts";
import type { GraphNode, Group, Link, WorkflowDocument } from "./records.ts";
import { writeValues } from "./savedValues.ts";
import { type InputSocket, inputSockets, outputSockets } from "./sockets.ts";

export function writeWorkflow(document: WorkflowDocument, definitions: Definitions): JsonObject {
  const links = Object.values(document.links);
  const order = executionOrder(document);
  const slots = new Map(
    Object.values(document.nodes).map((node) => [node.id, slotsOf(node, links, definitions)]),
  );
  return {
    revision: 0,
    ...document.rest,
    id: document.id,
    last_node_id: document.lastNodeId,
    last_link_id: document.lastLinkId,
    nodes: Object.values(document.nodes).map((node) =>
      writeNode(node, slots.get(node.id) ?? [], links, order.get(node.id) ?? 0, definitions),
    ),
    links: links.map((link) => writeLink(link, slots)),
    groups: Object.values(document.groups).map(writeGroup),
    config: document.rest.config ?? {},
    extra: { ...asObject(document.rest.extra), ...linkExtensions(links) },
    version: 0.4,
  };
}

/** Files have numbers where the id is one. */
function fileId(id: string): Json {
  return /^(0|[1-9]\d{0,14})$/.test(id) ? Number(id) : id;
}

/** The inputs that a file lists: all sockets, and the widgets that are linked or were listed before. */
function slotsOf(node: GraphNode, links: readonly Link[], definitions: Definitions): InputSocket[] {
  const linked = new Set(links.filter((link) => link.target === node.id).map((link) => link.targetInput));
  const listed = new Set(node.inputs.map((slot) => slot.name));
  return inputSockets(node, definitions).filter(
    (input) => !input.isWidget || linked.has(input.name) || listed.has(input.name),
  );
}

function writeNode(
  node: GraphNode,
  slots: readonly InputSocket[],
  links: readonly Link[],
  order: number,
  definitions: Definitions,
): JsonObject {
  const definition = definitions[node.type];
  const { isCollapsed } = node;
  const flags = {
    ...asObject(node.rest.flags),
    ...(isCollapsed ? { collapsed: true } : { collapsed: undefined }),
  };
  return {
    ...node.rest,
    id: fileId(node.id),
    type: node.type,
    pos: [node.x, node.y],
    size: [node.width, node.height],
    flags: withoutUndefined(flags),
    order,
    mode: node.mode,
    ...(node.title === null ? {} : { title: node.title }),
    inputs: slots.map((slot) => writeInput(slot, node, links)),
    outputs: outputSockets(node, definitions).map((output) => ({
      name: output.label,
      type: output.type,
      links: outgoing(links, node.id, output.slot),
    })),
    properties: { "Node name for S&R": node.type, ...asObject(node.rest.properties) },
    ...(definition ? { widgets_values: writeValues(definition, node.values) } : {}),
  };
}

function withoutUndefined(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined));
}

function outgoing(links: readonly Link[], node: string, slot: number): Json {
  const ids = links
    .filter((link) => link.source === node && link.sourceSlot === slot)
    .map((link) => fileId(link.id));
  return ids.length > 0 ? ids : null;
}

function writeInput(slot: InputSocket, node: GraphNode, links: readonly Link[]): JsonObject {
  const link = links.find((candidate) => candidate.target === node.id && candidate.targetInput === slot.name);
  return {
    name: slot.name,
    type: slot.type,
    ...(slot.label === slot.name ? {} : { label: slot.label }),
    ...(slot.isWidget ? { widget: { name: slot.name } } : {}),
    link: link ? fileId(link.id) : null,
  };
}

function writeLink(link: Link, slots: ReadonlyMap<string, readonly InputSocket[]>): Json {
  const index = slots.get(link.target)?.findIndex((slot) => slot.name === link.targetInput) ?? 0;
  return [fileId(link.id), fileId(link.source), link.sourceSlot, fileId(link.target), index, link.type];
}

function linkExtensions(links: readonly Link[]): JsonObject {
  const entries = links.filter((link) => link.parentId !== null);
  if (entries.length === 0) return {};
  return { linkExtensions: entries.map((link) => ({ id: fileId(link.id), parentId: link.parentId })) };
}

function writeGroup(group: Group): JsonObject {
  return {
    ...group.rest,
    title: group.title,
    bounding: [group.x, group.y, group.width, group.height],
    ...(group.color === null ? {} : { color: group.color }),
  };
}

/** Each node's place in an order in which sources come first; nodes of a loop come last. */
export function executionOrder(document: WorkflowDocument): Map<string, number> {
  const links = Object.values(document.links);
  const missing = new Map(Object.keys(document.nodes).map((id) => [id, 0]));
  for (const link of links) missing.set(link.target, (missing.get(link.target) ?? 0) + 1);
  const ready = [...missing].filter(([, count]) => count === 0).map(([id]) => id);
  const order = new Map<string, number>();
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    order.set(id, order.size);
    for (const link of links.filter((candidate) => candidate.source === id)) {
      const left = (missing.get(link.target) ?? 1) - 1;
      missing.set(link.target, left);
      if (left === 0) ready.push(link.target);
    }
  }
  for (const id of missing.keys()) if (!order.has(id)) order.set(id, order.size);
  return order;
}
