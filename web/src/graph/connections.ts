// Whether an output may be connected to an input, with the reason in words when it may not.

import { PRIMITIVE } from "./builtin.ts";
import type { Definitions } from "./definitions.ts";
import { type GraphNode, linksOf, type WorkflowDocument } from "./records.ts";
import { areCompatible, inputSockets, outputSockets, outputType } from "./sockets.ts";

export interface Endpoints {
  readonly source: string;
  readonly sourceSlot: number;
  readonly target: string;
  readonly targetInput: string;
}

export type Verdict = { readonly isAllowed: true } | { readonly isAllowed: false; readonly reason: string };

function refuse(reason: string): Verdict {
  return { isAllowed: false, reason };
}

export function canConnect(document: WorkflowDocument, definitions: Definitions, ends: Endpoints): Verdict {
  const source = document.nodes[ends.source];
  const target = document.nodes[ends.target];
  if (!source || !target) return refuse("One of the two nodes is gone.");
  if (ends.source === ends.target) return refuse("A node cannot feed itself.");
  const output = outputSockets(source, definitions)[ends.sourceSlot];
  const input = inputSockets(target, definitions).find((socket) => socket.name === ends.targetInput);
  if (!output || !input) return refuse("That socket does not exist.");
  if (source.type === PRIMITIVE && !input.isWidget)
    return refuse("A value box fits only inputs with a widget.");
  const type = outputType(document, definitions, ends.source, ends.sourceSlot);
  if (!areCompatible(type, input.type))
    return refuse(`${type} does not fit ${input.label || "this input"}, which takes ${input.type}.`);
  if (reaches(document, ends.target, ends.source)) return refuse("That would make a loop.");
  return { isAllowed: true };
}

/** Whether data that leaves `from` arrives at `to`. */
export function reaches(document: WorkflowDocument, from: string, to: string): boolean {
  const successors = new Map<string, string[]>();
  for (const link of Object.values(document.links)) {
    successors.set(link.source, [...(successors.get(link.source) ?? []), link.target]);
  }
  const waiting = [from];
  const seen = new Set<string>();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (id === to) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    waiting.push(...(successors.get(id) ?? []));
  }
  return false;
}

/** The first input of a node that takes the type: sockets without a widget first, free ones before taken ones. */
export function firstInputFor(
  document: WorkflowDocument,
  definitions: Definitions,
  node: GraphNode,
  type: string,
): string | null {
  const taken = new Set(
    linksOf(document, node.id)
      .filter((link) => link.target === node.id)
      .map((link) => link.targetInput),
  );
  const fitting = inputSockets(node, definitions).filter((input) => areCompatible(type, input.type));
  const score = (name: string, isWidget: boolean, wild: boolean) =>
    (taken.has(name) ? 4 : 0) + (isWidget ? 2 : 0) + (wild ? 1 : 0);
  const ranked = fitting
    .map((input) => ({ input, rank: score(input.name, input.isWidget, input.type === "*") }))
    .sort((left, right) => left.rank - right.rank);
  return ranked[0]?.input.name ?? null;
}

export function firstOutputFor(definitions: Definitions, node: GraphNode, type: string): number | null {
  return outputSockets(node, definitions).find((output) => areCompatible(output.type, type))?.slot ?? null;
}
