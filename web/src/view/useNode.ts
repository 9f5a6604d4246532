// One node's slice of each store: typing in a widget or a progress event draws that node alone again.

import { useMemo } from "react";
import type { Complaint } from "../api/refusal.ts";
import { asString } from "../graph/json.ts";
import type { GraphNode, WorkflowDocument } from "../graph/records.ts";
import {
  type InputSocket,
  inputSockets,
  type OutputSocket,
  outputSockets,
  outputType,
} from "../graph/sockets.ts";
import { subgraphOf } from "../graph/subgraphs.ts";
import { useEditor } from "../state/editor.ts";
import type { NodeRun } from "../state/runs.ts";
import { useSession } from "../state/session.ts";

export interface NodeSockets {
  readonly inputs: readonly InputSocket[];
  readonly outputs: readonly OutputSocket[];
}

export function useSockets(record: GraphNode): NodeSockets {
  const definitions = useEditor((state) => state.definitions);
  return useMemo(
    () => ({ inputs: inputSockets(record, definitions), outputs: outputSockets(record, definitions) }),
    [record, definitions],
  );
}

/** Handles that have a link: `in:name` and `out:slot`, as one string so that equal sets compare equal. */
export function useLinked(id: string): ReadonlySet<string> {
  const key = useEditor(({ document }) => linkedHandles(document).get(id) ?? "");
  return useMemo(() => new Set(key.split("\n")), [key]);
}

// every node asks after every edit, so it is worked out once a document
const known = new WeakMap<WorkflowDocument["links"], ReadonlyMap<string, string>>();

function linkedHandles({ links }: WorkflowDocument): ReadonlyMap<string, string> {
  const before = known.get(links);
  if (before) return before;
  const handles = new Map<string, Set<string>>();
  const add = (node: string, handle: string) =>
    handles.set(node, (handles.get(node) ?? new Set()).add(handle));
  for (const link of Object.values(links)) {
    add(link.target, `in:${link.targetInput}`);
    add(link.source, `out:${link.sourceSlot}`);
  }
  const keys = new Map([...handles].map(([node, set]) => [node, [...set].sort().join("\n")]));
  known.set(links, keys);
  return keys;
}

/** The name of the subgraph that a node is an instance of. */
export function useSubgraph(type: string): string | null {
  return useEditor(({ document }) => {
    const subgraph = subgraphOf(document, type);
    return subgraph && asString(subgraph.name, "Subgraph");
  });
}

/** The type that passes a reroute or leaves a value box. */
export function useOutputType(id: string): string {
  return useEditor(({ document, definitions }) => outputType(document, definitions, id, 0));
}

export function useNodeRun(id: string): NodeRun | undefined {
  return useSession(({ shown, runs }) => (shown === null ? undefined : runs[shown]?.nodes[id]));
}

const NO_COMPLAINTS: readonly Complaint[] = [];

export function useComplaints(id: string): readonly Complaint[] {
  return useSession(({ complaints }) => complaints[id] ?? NO_COMPLAINTS);
}

export function useFailure(id: string): string | null {
  return useSession(({ failure }) => (failure?.node === id ? failure.message : null));
}
