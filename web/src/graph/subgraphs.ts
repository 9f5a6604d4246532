// Instances of subgraphs unfolded into the nodes inside them, under ids such as "7:3", so that the rest of the
// way to a prompt knows no subgraphs. The document that is edited keeps its instances.

import type { Definitions } from "./definitions.ts";
import { asList, asObject, asString, isObject, type Json, type JsonObject } from "./json.ts";
import { readWorkflow } from "./readWorkflow.ts";
import { type GraphNode, type Link, linkInto, NodeMode, type WorkflowDocument } from "./records.ts";
import { inputSockets } from "./sockets.ts";

const DEEPEST = 20;
const INPUT_NODE = "-10";
const OUTPUT_NODE = "-20";

export class SubgraphError extends Error {}

export function subgraphOf(document: WorkflowDocument, type: string): JsonObject | null {
  const all = asList(asObject(document.rest.definitions).subgraphs).filter(isObject);
  return all.find((subgraph) => subgraph.id === type) ?? null;
}

export function unfolded(document: WorkflowDocument, definitions: Definitions): WorkflowDocument {
  let current = document;
  for (let depth = 0; depth <= DEEPEST; depth++) {
    const instances = Object.values(current.nodes).filter((node) => isUnfoldable(current, node));
    if (instances.length === 0) return current;
    for (const instance of instances) current = unfold(current, definitions, instance);
  }
  throw new SubgraphError("A subgraph of this workflow holds itself.");
}

/** A muted or bypassed instance acts as one node does, whatever is inside. */
function isUnfoldable(document: WorkflowDocument, node: GraphNode): boolean {
  const isOff = node.mode === NodeMode.mute || node.mode === NodeMode.bypass;
  return !isOff && subgraphOf(document, node.type) !== null;
}

interface Inside {
  readonly nodes: readonly GraphNode[];
  readonly links: readonly Link[];
  readonly inputNames: readonly string[];
}

function unfold(document: WorkflowDocument, definitions: Definitions, host: GraphNode): WorkflowDocument {
  const subgraph = subgraphOf(document, host.type);
  if (!subgraph) return document;
  const inside = readInside(subgraph, definitions, host.id);
  const values = hostValues(document, definitions, host, subgraph, inside);
  const nodes = Object.fromEntries(
    inside.nodes.map((node) => [node.id, withValues(node, values.get(node.id))]),
  );
  const links: Link[] = [
    ...Object.values(document.links).filter((link) => link.source !== host.id && link.target !== host.id),
    ...inside.links.filter((link) => !isInput(link, host) && !isOutput(link, host)),
    ...entering(document, host, inside),
    ...leaving(document, host, inside),
  ];
  const { [host.id]: _, ...others } = document.nodes;
  return {
    ...document,
    nodes: { ...others, ...nodes },
    links: Object.fromEntries(links.map((link, index) => [String(index), { ...link, id: String(index) }])),
  };
}

/** The definition read as a workflow, its two ends as nodes of their own, all ids below the host's. */
function readInside(subgraph: JsonObject, definitions: Definitions, host: string): Inside {
  const inputNames = asList(subgraph.inputs).map((input) => asString(asObject(input).name));
  const slot = (name: string) => ({ name, type: "*", link: null });
  const ends: JsonObject[] = [
    { id: Number(INPUT_NODE), type: "subgraph inputs", outputs: inputNames.map(slot) },
    {
      id: Number(OUTPUT_NODE),
      type: "subgraph outputs",
      inputs: asList(subgraph.outputs).map((_, index) => slot(String(index))),
    },
  ];
  const file = { ...subgraph, nodes: [...asList(subgraph.nodes), ...ends] };
  const { document } = readWorkflow(file, definitions, host);
  const below = (id: string) => `${host}:${id}`;
  return {
    inputNames,
    nodes: Object.values(document.nodes)
      .filter((node) => node.id !== INPUT_NODE && node.id !== OUTPUT_NODE)
      .map((node) => ({ ...node, id: below(node.id) })),
    links: Object.values(document.links).map((link) => ({
      ...link,
      source: below(link.source),
      target: below(link.target),
    })),
  };
}

function isInput(link: Link, host: GraphNode): boolean {
  return link.source === `${host.id}:${INPUT_NODE}`;
}

function isOutput(link: Link, host: GraphNode): boolean {
  return link.target === `${host.id}:${OUTPUT_NODE}`;
}

/** What feeds the host feeds the nodes inside; the host's inputs are found by name, not by place. */
function entering(document: WorkflowDocument, host: GraphNode, inside: Inside): Link[] {
  return inside.links
    .filter((link) => isInput(link, host) && !isOutput(link, host))
    .flatMap((link) => {
      const outer = linkInto(document, host.id, inside.inputNames[link.sourceSlot] ?? "");
      return outer ? [{ ...link, source: outer.source, sourceSlot: outer.sourceSlot }] : [];
    });
}

/** What the host feeds is fed from inside, or straight from what feeds the host. */
function leaving(document: WorkflowDocument, host: GraphNode, inside: Inside): Link[] {
  const outgoing = Object.values(document.links).filter((link) => link.source === host.id);
  return outgoing.flatMap((outer) => {
    const inner = inside.links.find(
      (link) => isOutput(link, host) && link.targetInput === String(outer.sourceSlot),
    );
    if (!inner) return [];
    if (!isInput(inner, host)) return [{ ...outer, source: inner.source, sourceSlot: inner.sourceSlot }];
    const through = linkInto(document, host.id, inside.inputNames[inner.sourceSlot] ?? "");
    return through ? [{ ...outer, source: through.source, sourceSlot: through.sourceSlot }] : [];
  });
}

type ValuesByNode = ReadonlyMap<string, Readonly<Record<string, Json>>>;

function withValues(node: GraphNode, values: Readonly<Record<string, Json>> | undefined): GraphNode {
  return values ? { ...node, values: { ...node.values, ...values } } : node;
}

/** The values that this instance sets inside, by node: its own inputs' and those that it shows of others. */
function hostValues(
  document: WorkflowDocument,
  definitions: Definitions,
  host: GraphNode,
  subgraph: JsonObject,
  inside: Inside,
): ValuesByNode {
  const byNode = new Map<string, Record<string, Json>>();
  const set = (node: string, name: string, value: Json) =>
    byNode.set(node, { ...byNode.get(node), [name]: value });
  const byInput = new Map(inside.inputNames.map((name) => [name, host.values[name]]));
  const proxies = asList(asObject(host.rest.properties).proxyWidgets).map(asList);
  const saved = asList(host.rest.widgets_values);
  if (proxies.length === 0) {
    promoted(document, definitions, host, subgraph, inside).forEach((name, index) => {
      byInput.set(name, byInput.get(name) ?? saved[index]);
    });
  }
  for (const [index, [node, widget]] of proxies.entries()) {
    const value = saved[index];
    const name = asString(widget).replace(/^\d+: /, "");
    if (value === undefined || value === null || name.startsWith("$$")) continue;
    if (String(node) === "-1") byInput.set(name, byInput.get(name) ?? value);
    else set(`${host.id}:${node}`, name, value);
  }
  for (const link of inside.links.filter((candidate) => isInput(candidate, host))) {
    const value = byInput.get(inside.inputNames[link.sourceSlot] ?? "");
    if (value !== undefined) set(link.target, link.targetInput, value);
  }
  return byNode;
}

/** Inputs that stand for a widget inside: the first of their links, as the definition lists them, reaches one. */
function promoted(
  document: WorkflowDocument,
  definitions: Definitions,
  host: GraphNode,
  subgraph: JsonObject,
  inside: Inside,
): string[] {
  return inside.inputNames.filter((_, slot) => {
    const ids = asList(asObject(asList(subgraph.inputs)[slot]).linkIds).map(String);
    const links = inside.links.filter((link) => isInput(link, host) && link.sourceSlot === slot);
    const first = links.sort((left, right) => ids.indexOf(left.id) - ids.indexOf(right.id))[0];
    const target = inside.nodes.find((node) => node.id === first?.target);
    if (!first || !target) return false;
    const inner = subgraphOf(document, target.type);
    if (inner) {
      const deeper = readInside(inner, definitions, target.id);
      return promoted(document, definitions, target, inner, deeper).includes(first.targetInput);
    }
    return inputSockets(target, definitions).some(
      (input) => input.isWidget && input.name === first.targetInput,
    );
  });
}
