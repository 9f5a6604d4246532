// What the editor knows of running prompts, as a pure function of the server's events.
// Several prompts run at once: each has its own record, and the canvas shows the one that started last.

import type { Failure, NodeProgress, ServerEvent } from "../api/events.ts";
import type { HistoryItem } from "../api/history.ts";
import type { NodeOutput } from "../api/output.ts";

export interface NodeRun {
  readonly state: "running" | "finished" | "cached" | "failed";
  readonly value: number;
  readonly max: number;
}

export interface Run {
  readonly promptId: string;
  readonly state: "waiting" | "running" | "success" | "error" | "interrupted";
  readonly nodes: Readonly<Record<string, NodeRun>>;
}

export interface Runs {
  readonly runs: Readonly<Record<string, Run>>;
  /** the prompt whose progress the canvas shows */
  readonly shown: string | null;
  readonly failure: Failure | null;
  readonly outputs: Readonly<Record<string, NodeOutput>>;
  readonly texts: Readonly<Record<string, string>>;
  readonly previews: Readonly<Record<string, Blob>>;
}

export const NO_RUNS: Runs = { runs: {}, shown: null, failure: null, outputs: {}, texts: {}, previews: {} };
const KEPT_RUNS = 50;

export function isActive(run: Run | undefined): boolean {
  return run?.state === "waiting" || run?.state === "running";
}

export function queued(state: Runs, promptId: string): Runs {
  // events may have come before the answer to the POST did
  if (state.runs[promptId]) return state;
  return {
    ...state,
    failure: null,
    runs: trimmed({ ...state.runs, [promptId]: { promptId, state: "waiting", nodes: {} } }),
  };
}

function trimmed(runs: Runs["runs"]): Runs["runs"] {
  const entries = Object.entries(runs);
  const surplus = entries.length - KEPT_RUNS;
  const old = new Set(
    entries
      .filter(([, run]) => !isActive(run))
      .slice(0, Math.max(0, surplus))
      .map(([id]) => id),
  );
  return Object.fromEntries(entries.filter(([id]) => !old.has(id)));
}

export function reduce(state: Runs, event: ServerEvent): Runs {
  switch (event.kind) {
    case "started":
      return { ...withRun(state, event.promptId, { state: "running" }), shown: event.promptId };
    case "cached":
      return withNodes(state, event.promptId, Object.fromEntries(event.nodes.map((node) => [node, CACHED])));
    case "executing":
      return withNodes(state, event.promptId, {
        [event.node]: state.runs[event.promptId]?.nodes[event.node] ?? BEGUN,
      });
    case "progress":
      return withNodes(state, event.promptId, progressed(event.nodes));
    case "executed":
      return event.output ? { ...state, outputs: { ...state.outputs, [event.node]: event.output } } : state;
    case "text":
      return { ...state, texts: { ...state.texts, [event.node]: event.text } };
    case "preview":
      return { ...state, previews: { ...state.previews, [event.node]: event.image } };
    case "succeeded":
      return withRun(state, event.promptId, { state: "success" });
    case "interrupted":
      return withRun(state, event.promptId, { state: "interrupted" });
    case "failed":
      return failed(state, event.promptId, event.failure);
    case "ended":
      return ended(state, event.promptId);
    default:
      return state;
  }
}

const CACHED: NodeRun = { state: "cached", value: 1, max: 1 };
const BEGUN: NodeRun = { state: "running", value: 0, max: 1 };

function progressed(nodes: Readonly<Record<string, NodeProgress>>): Record<string, NodeRun> {
  return Object.fromEntries(
    Object.entries(nodes).map(([id, { value, max, state }]) => [
      id,
      { value, max, state: state === "finished" ? "finished" : state === "error" ? "failed" : "running" },
    ]),
  );
}

function withRun(state: Runs, promptId: string, change: Partial<Run>): Runs {
  const run = state.runs[promptId] ?? { promptId, state: "running", nodes: {} };
  return { ...state, runs: trimmed({ ...state.runs, [promptId]: { ...run, ...change } }) };
}

function withNodes(state: Runs, promptId: string, nodes: Readonly<Record<string, NodeRun>>): Runs {
  return withRun(state, promptId, { nodes: { ...state.runs[promptId]?.nodes, ...nodes } });
}

function failed(state: Runs, promptId: string, failure: Failure): Runs {
  const begun = state.runs[promptId]?.nodes[failure.node] ?? BEGUN;
  const marked = withNodes(state, promptId, { [failure.node]: { ...begun, state: "failed" } });
  return { ...withRun(marked, promptId, { state: "error" }), failure, shown: promptId };
}

/** Whatever became of the prompt, nothing of it runs any more; another one that does is shown instead. */
function ended(state: Runs, promptId: string): Runs {
  const run = state.runs[promptId];
  if (!run) return state;
  const nodes = Object.fromEntries(
    Object.entries(run.nodes).map(([id, node]) => [
      id,
      node.state === "running" ? { ...node, state: "finished" as const } : node,
    ]),
  );
  const closed = withRun(state, promptId, { nodes, state: isActive(run) ? "success" : run.state });
  const next = Object.values(closed.runs).findLast((candidate) => candidate.state === "running");
  return state.shown === promptId && next && run.state !== "error"
    ? { ...closed, shown: next.promptId }
    : closed;
}

/** After a lost connection: what the history says of prompts that ended unseen. */
export function caughtUp(state: Runs, item: HistoryItem): Runs {
  const run = withRun(state, item.promptId, { state: item.state });
  return ended({ ...run, outputs: { ...state.outputs, ...item.outputs } }, item.promptId);
}
