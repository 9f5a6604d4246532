// A workflow file (version 0.4 or 1) as a document. Tolerant: what is missing gets a default, what is
// unknown is kept, what cannot be kept is said in a warning.

import type { Definitions } from "./definitions.ts";
import {
  asList,
  asNumber,
  asObject,
  asString,
  isObject,
  type Json,
  type JsonObject,
  without,
} from "./json.ts";
import type { GraphNode, Group, Link, SavedSlot, WorkflowDocument } from "./records.ts";
import { readValues } from "./savedValues.ts";
import { inputSockets } from "./sockets.ts";

export interface ReadWorkflow {
  readonly document: WorkflowDocument;
  readonly warnings: readonly string[];
}

const TOP_KEYS = new Set([
  "id",
  "nodes",
  "links",
  "groups",
  "last_node_id",
  "last_link_id",
  "version",
  "state",
  "reroutes",
]);
const NODE_KEYS = new Set(["id", "type", "title", "pos", "size", "mode", "inputs", "outputs"]);
const GROUP_KEYS = new Set(["title", "bounding", "color"]);

export function isWorkflow(value: unknown): value is JsonObject {
  return isObject(value) && Array.isArray(value.nodes);
}

export function readWorkflow(file: JsonObject, definitions: Definitions, freshId: string): ReadWorkflow {
  const warnings: string[] = [];
  const saved = asList(file.nodes).filter(isObject);
  const nodes = Object.fromEntries(
    saved.map((node) => readNode(node, definitions)).map((node) => [node.id, node]),
  );
  const links = readLinks(file, saved, nodes, definitions, warnings);
  const groups = asList(file.groups).filter(isObject).map(readGroup);
  const state = asObject(file.state);
  const largest = (ids: Iterable<string>) => Math.max(0, ...[...ids].map(Number).filter(Number.isFinite));
  return {
    document: {
      id: asString(file.id) || freshId,
      nodes,
      links,
      groups: Object.fromEntries(
        groups.map((group, index) => [String(index), { ...group, id: String(index) }]),
      ),
      lastNodeId: Math.max(
        asNumber(file.last_node_id, asNumber(state.lastNodeId, 0)),
        largest(Object.keys(nodes)),
      ),
      lastLinkId: Math.max(
        asNumber(file.last_link_id, asNumber(state.lastLinkId, 0)),
        largest(Object.keys(links)),
      ),
      rest: readRest(file),
    },
    warnings,
  };
}

/** Version 1 keeps reroutes at the top; 0.4, which is written, keeps them under `extra`. */
function readRest(file: JsonObject): JsonObject {
  const rest = without(file, TOP_KEYS);
  const extra = without(asObject(file.extra), new Set(["linkExtensions"]));
  const withReroutes = Array.isArray(file.reroutes) ? { ...extra, reroutes: file.reroutes } : extra;
  const groupExtras = isObject(file.extra) || Array.isArray(file.reroutes) ? { extra: withReroutes } : {};
  return { ...rest, ...groupExtras };
}

function pair(value: Json | undefined, fallback: readonly [number, number]): readonly [number, number] {
  const source = Array.isArray(value) ? value : [asObject(value)["0"], asObject(value)["1"]];
  return [asNumber(source[0], fallback[0]), asNumber(source[1], fallback[1])];
}

function readNode(saved: JsonObject, definitions: Definitions): GraphNode {
  const type = asString(saved.type);
  const definition = definitions[type];
  const [x, y] = pair(saved.pos, [0, 0]);
  const [width, height] = pair(saved.size, [270, 0]);
  const rest = without(saved, NODE_KEYS);
  return {
    id: String(saved.id),
    type,
    title: asString(saved.title) || null,
    x,
    y,
    width,
    height,
    mode: asNumber(saved.mode, 0),
    isCollapsed: asObject(saved.flags).collapsed === true,
    values: definition ? readValues(definition, saved) : {},
    inputs: asList(saved.inputs).filter(isObject).map(readSlot),
    outputs: asList(saved.outputs).filter(isObject).map(readSlot),
    rest: definition ? without(rest, new Set(["widgets_values", "widgets_values_named"])) : rest,
  };
}

function readSlot(saved: JsonObject): SavedSlot {
  return {
    name: asString(saved.name),
    type: typeof saved.type === "string" ? saved.type : "*",
    label: asString(saved.label) || null,
    widget: isObject(saved.widget) ? asString(saved.widget.name) : null,
  };
}

function readGroup(saved: JsonObject): Omit<Group, "id"> {
  const bounding = asList(saved.bounding);
  const number = (index: number, fallback: number) => asNumber(bounding[index], fallback);
  return {
    title: asString(saved.title, "Group"),
    x: number(0, 0),
    y: number(1, 0),
    width: number(2, 300),
    height: number(3, 200),
    color: asString(saved.color) || null,
    rest: without(saved, GROUP_KEYS),
  };
}

interface RawLink {
  readonly id: string;
  readonly source: string;
  readonly sourceSlot: number;
  readonly target: string;
  readonly targetSlot: number;
  readonly type: string;
  readonly parentId: number | null;
}

function rawLink(saved: Json, parents: ReadonlyMap<string, number>): RawLink[] {
  if (Array.isArray(saved)) {
    const [id, source, sourceSlot, target, targetSlot, type] = saved as readonly Json[];
    return rawLink(
      { id, origin_id: source, origin_slot: sourceSlot, target_id: target, target_slot: targetSlot, type },
      parents,
    );
  }
  if (!isObject(saved) || saved.origin_id === undefined || saved.target_id === undefined) return [];
  const id = String(saved.id);
  return [
    {
      id,
      source: String(saved.origin_id),
      sourceSlot: asNumber(saved.origin_slot, 0),
      target: String(saved.target_id),
      targetSlot: asNumber(saved.target_slot, 0),
      type: asString(saved.type) || "*",
      parentId: asNumber(saved.parentId, parents.get(id) ?? -1),
    },
  ];
}

/** The list says what is connected; the inputs that name a link's id say which slot it enters. */
function readLinks(
  file: JsonObject,
  saved: readonly JsonObject[],
  nodes: Readonly<Record<string, GraphNode>>,
  definitions: Definitions,
  warnings: string[],
): Record<string, Link> {
  const claims = readClaims(saved);
  const extensions = asList(asObject(file.extra).linkExtensions).filter(isObject);
  const parents = new Map(extensions.map((entry) => [String(entry.id), asNumber(entry.parentId, -1)]));
  const raw = asList(file.links).flatMap((link) => rawLink(link, parents));
  const isClaimed = (link: RawLink) => claims.has(`${link.target} ${link.id}`);
  const taken = new Set<string>();
  const links: Record<string, Link> = {};
  // a link that an input claims wins over one that only the list knows
  for (const link of [...raw.filter(isClaimed), ...raw.filter((candidate) => !isClaimed(candidate))]) {
    const target = nodes[link.target];
    if (!nodes[link.source] || !target) {
      warnings.push(`Link ${link.id} was dropped: one of its nodes is not in the file.`);
      continue;
    }
    const input = claims.get(`${link.target} ${link.id}`) ?? slotName(target, link.targetSlot, definitions);
    if (input === null || taken.has(`${link.target} ${input}`) || links[link.id]) continue;
    if (!inputSockets(target, definitions).some((socket) => socket.name === input)) {
      warnings.push(`Link ${link.id} was dropped: ${target.type} has no input "${input}" any more.`);
      continue;
    }
    taken.add(`${link.target} ${input}`);
    const { id, source, sourceSlot, type, parentId } = link;
    links[id] = {
      id,
      source,
      sourceSlot,
      target: link.target,
      targetInput: input,
      type,
      parentId: parentId === -1 ? null : parentId,
    };
  }
  return links;
}

function readClaims(saved: readonly JsonObject[]): Map<string, string> {
  const claims = new Map<string, string>();
  for (const node of saved) {
    for (const input of asList(node.inputs).filter(isObject)) {
      if (input.link !== null && input.link !== undefined) {
        const widget = isObject(input.widget) ? asString(input.widget.name) : "";
        claims.set(`${node.id} ${input.link}`, widget || asString(input.name));
      }
    }
  }
  return claims;
}

function slotName(target: GraphNode, slot: number, definitions: Definitions): string | null {
  return target.inputs[slot]?.name ?? inputSockets(target, definitions)[slot]?.name ?? null;
}
