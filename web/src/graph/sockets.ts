// What a node can be connected by: its definition's sockets, else the slots that its file saved.

import { PRIMITIVE, REROUTE } from "./builtin.ts";
import type { Definitions } from "./definitions.ts";
import { asString } from "./json.ts";
import { type GraphNode, linkInto, type WorkflowDocument } from "./records.ts";
import { namedOutputs } from "./schemaOutputs.ts";
import { inputsOf, isWidgetInput } from "./widgets.ts";

export interface InputSocket {
  readonly name: string;
  readonly label: string;
  readonly type: string;
  readonly isRequired: boolean;
  /** the input also has a widget, which a link overrides */
  readonly isWidget: boolean;
  readonly tooltip: string | null;
}

export interface OutputSocket {
  readonly slot: number;
  readonly label: string;
  readonly type: string;
  readonly tooltip: string | null;
}

export function inputSockets(node: GraphNode, definitions: Definitions): InputSocket[] {
  const definition = definitions[node.type];
  if (!definition) return node.inputs.map((slot) => savedInput(slot));
  const labels = new Map(node.inputs.map((slot) => [slot.name, slot.label]));
  const known = inputsOf(definition, node.values)
    .filter((input) => input.options.socketless !== true)
    .map((input) => ({
      name: input.name,
      label: labels.get(input.name) ?? (asString(input.options.display_name) || input.name),
      type: input.type === "COMFY_MATCHTYPE_V3" ? "*" : input.type,
      isRequired: input.isRequired,
      isWidget: isWidgetInput(input),
      tooltip: asString(input.options.tooltip) || null,
    }));
  const names = new Set(known.map((input) => input.name));
  // plain slots that this version of the node does not declare are kept and sent under their name
  const extra = node.inputs.filter((slot) => slot.widget === null && !names.has(slot.name));
  return [...known, ...extra.map((slot) => savedInput(slot))];
}

function savedInput(slot: GraphNode["inputs"][number]): InputSocket {
  return {
    name: slot.name,
    label: slot.label ?? slot.name,
    type: slot.type,
    isRequired: false,
    isWidget: slot.widget !== null,
    tooltip: null,
  };
}

export function outputSockets(node: GraphNode, definitions: Definitions): OutputSocket[] {
  const definition = definitions[node.type];
  if (!definition) {
    return node.outputs.map((output, slot) => ({
      slot,
      label: output.label ?? output.name,
      type: output.type,
      tooltip: null,
    }));
  }
  return namedOutputs(definition, node.values).map((output, slot) => ({
    slot,
    label: node.outputs[slot]?.label ?? output.name,
    type: output.type,
    tooltip: output.tooltip,
  }));
}

/** Equal ignoring case, a wildcard on either side, or one name in common of two comma lists. */
export function areCompatible(output: string, input: string): boolean {
  const wild = (type: string) => type === "*" || type === "" || type === "0";
  if (wild(output) || wild(input)) return true;
  const offered = output.toLowerCase().split(",");
  const accepted = new Set(input.toLowerCase().split(","));
  return offered.some((type) => accepted.has(type));
}

/** The type that leaves a slot; reroutes and value boxes have that of what they are connected to. */
export function outputType(
  document: WorkflowDocument,
  definitions: Definitions,
  nodeId: string,
  slot: number,
  visited: ReadonlySet<string> = new Set(),
): string {
  const node = document.nodes[nodeId];
  if (!node || visited.has(nodeId)) return "*";
  if (node.type === REROUTE) {
    const link = linkInto(document, nodeId, "");
    if (!link) return "*";
    return outputType(document, definitions, link.source, link.sourceSlot, new Set([...visited, nodeId]));
  }
  if (node.type === PRIMITIVE) return primitiveType(document, definitions, nodeId);
  return outputSockets(node, definitions)[slot]?.type ?? "*";
}

function primitiveType(document: WorkflowDocument, definitions: Definitions, nodeId: string): string {
  const link = Object.values(document.links).find((candidate) => candidate.source === nodeId);
  const target = link && document.nodes[link.target];
  if (!link || !target) return "*";
  return inputSockets(target, definitions).find((input) => input.name === link.targetInput)?.type ?? "*";
}
