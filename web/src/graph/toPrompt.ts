// A document as the API's prompt: which nodes are sent, with which values, and where each link really comes from.

import { isEditorOnly, PRIMITIVE, REROUTE } from "./builtin.ts";
import type { Definitions } from "./definitions.ts";
import type { Json, JsonObject } from "./json.ts";
import { fitted } from "./primitive.ts";
import { type GraphNode, type Link, linkInto, NodeMode, type WorkflowDocument } from "./records.ts";
import { areCompatible, inputSockets, outputSockets } from "./sockets.ts";
import { unfolded } from "./subgraphs.ts";
import { widgetsOf } from "./widgets.ts";

export interface PromptNode {
  readonly class_type: string;
  readonly inputs: JsonObject;
  readonly _meta: { readonly title: string };
}

export type Prompt = Readonly<Record<string, PromptNode>>;

export function toPrompt(edited: WorkflowDocument, definitions: Definitions): Prompt {
  const document = unfolded(edited, definitions);
  const sent = Object.values(document.nodes).filter(isSent);
  return Object.fromEntries(sent.map((node) => [node.id, promptNode(document, definitions, node)]));
}

function isSent(node: GraphNode): boolean {
  return node.mode !== NodeMode.mute && node.mode !== NodeMode.bypass && !isEditorOnly(node.type);
}

function promptNode(document: WorkflowDocument, definitions: Definitions, node: GraphNode): PromptNode {
  const definition = definitions[node.type];
  const inputs: Record<string, Json> = {};
  for (const widget of definition ? widgetsOf(definition, node.values) : []) {
    const value = node.values[widget.name];
    if (widget.isSent && value !== undefined) inputs[widget.name] = wrapped(value);
  }
  for (const input of inputSockets(node, definitions)) {
    const link = linkInto(document, node.id, input.name);
    const found = link && follow({ document, definitions }, link, input.type, new Set());
    if (found?.kind === "output") inputs[input.name] = [found.node, found.slot];
    if (found?.kind === "value") {
      const target = definition?.inputs.find((candidate) => candidate.name === input.name);
      inputs[input.name] = wrapped(target ? fitted(found.value, target) : found.value);
    }
  }
  return {
    class_type: node.type,
    inputs,
    _meta: { title: node.title ?? definition?.displayName ?? node.type },
  };
}

/** A bare list would read as a link. */
function wrapped(value: Json): Json {
  return Array.isArray(value) ? { __value__: value } : value;
}

interface Place {
  readonly document: WorkflowDocument;
  readonly definitions: Definitions;
}

type Origin =
  | { readonly kind: "output"; readonly node: string; readonly slot: number }
  | { readonly kind: "value"; readonly value: Json };

/** Where a link really starts, past reroutes and bypassed nodes; null when nothing arrives. */
function follow(place: Place, link: Link, wanted: string, visited: ReadonlySet<string>): Origin | null {
  const origin = place.document.nodes[link.source];
  if (!origin || visited.has(link.source)) return null;
  const seen = new Set([...visited, link.source]);
  if (origin.type === PRIMITIVE) return primitiveValue(origin);
  if (origin.type === REROUTE) {
    const before = linkInto(place.document, origin.id, "");
    return before && follow(place, before, wanted, seen);
  }
  if (origin.mode === NodeMode.mute) return null;
  if (origin.mode !== NodeMode.bypass) return { kind: "output", node: origin.id, slot: link.sourceSlot };
  const passage = bypassInput(place.definitions, origin, link.sourceSlot, wanted);
  const before = passage && linkInto(place.document, origin.id, passage.name);
  return passage && before ? follow(place, before, passage.type, seen) : null;
}

function primitiveValue(node: GraphNode): Origin | null {
  const value = node.values.value;
  return value === undefined ? null : { kind: "value", value };
}

/** The input that a bypassed node passes on: the one beside the output if it fits, else the first that fits. */
function bypassInput(
  definitions: Definitions,
  node: GraphNode,
  slot: number,
  wanted: string,
): { readonly name: string; readonly type: string } | null {
  const all = inputSockets(node, definitions);
  const inputs = [...all.filter((input) => !input.isWidget), ...all.filter((input) => input.isWidget)];
  const beside = inputs[slot];
  if (wanted === "*" || wanted === "") return beside ?? inputs[0] ?? null;
  const offered = outputSockets(node, definitions)[slot]?.type ?? "*";
  const fits = (type: string) => areCompatible(type, offered) && areCompatible(type, wanted);
  if (beside && fits(beside.type)) return beside;
  return inputs.find((input) => input.type === wanted) ?? inputs.find((input) => fits(input.type)) ?? null;
}
