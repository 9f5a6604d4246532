// Undo as differences between documents: which records were there before, and which are there after.

import type { WorkflowDocument } from "./records.ts";

type Change<T> = readonly [before: T | undefined, after: T | undefined];
type Changes<T> = Readonly<Record<string, Change<T>>>;
type Fields = Pick<WorkflowDocument, "id" | "lastNodeId" | "lastLinkId" | "rest">;

export interface Difference {
  readonly nodes: Changes<WorkflowDocument["nodes"][string]>;
  readonly links: Changes<WorkflowDocument["links"][string]>;
  readonly groups: Changes<WorkflowDocument["groups"][string]>;
  readonly fields: readonly [before: Fields, after: Fields];
}

export interface Step {
  readonly label: string;
  /** steps with the same key that follow one another closely become one */
  readonly mergeKey: string | null;
  readonly time: number;
  readonly difference: Difference;
}

export interface History {
  readonly past: readonly Step[];
  readonly future: readonly Step[];
}

export const NO_HISTORY: History = { past: [], future: [] };
const MERGE_WITHIN_MS = 1000;
const MAX_STEPS = 500;

function compare<T>(before: Readonly<Record<string, T>>, after: Readonly<Record<string, T>>): Changes<T> {
  const changes: Record<string, Change<T>> = {};
  if (before === after) return changes;
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[key] !== after[key]) changes[key] = [before[key], after[key]];
  }
  return changes;
}

function fieldsOf({ id, lastNodeId, lastLinkId, rest }: WorkflowDocument): Fields {
  return { id, lastNodeId, lastLinkId, rest };
}

export function difference(before: WorkflowDocument, after: WorkflowDocument): Difference {
  return {
    nodes: compare(before.nodes, after.nodes),
    links: compare(before.links, after.links),
    groups: compare(before.groups, after.groups),
    fields: [fieldsOf(before), fieldsOf(after)],
  };
}

function patch<T>(
  table: Readonly<Record<string, T>>,
  changes: Changes<T>,
  side: 0 | 1,
): Readonly<Record<string, T>> {
  const entries = Object.entries(changes);
  if (entries.length === 0) return table;
  const patched: Record<string, T> = { ...table };
  for (const [key, change] of entries) {
    const value = change[side];
    if (value === undefined) delete patched[key];
    else patched[key] = value;
  }
  return patched;
}

function move(document: WorkflowDocument, step: Difference, side: 0 | 1): WorkflowDocument {
  return {
    ...step.fields[side],
    nodes: patch(document.nodes, step.nodes, side),
    links: patch(document.links, step.links, side),
    groups: patch(document.groups, step.groups, side),
  };
}

function merged(first: Difference, second: Difference): Difference {
  const table = <T>(left: Changes<T>, right: Changes<T>): Changes<T> => {
    const both: Record<string, Change<T>> = { ...left };
    for (const [key, change] of Object.entries(right)) both[key] = [(left[key] ?? change)[0], change[1]];
    return both;
  };
  return {
    nodes: table(first.nodes, second.nodes),
    links: table(first.links, second.links),
    groups: table(first.groups, second.groups),
    fields: [first.fields[0], second.fields[1]],
  };
}

/** What was undone is forgotten, as everywhere. */
export function record(history: History, step: Step): History {
  const last = history.past.at(-1);
  const follows =
    last && step.mergeKey !== null && last.mergeKey === step.mergeKey && history.future.length === 0;
  if (follows && step.time - last.time < MERGE_WITHIN_MS) {
    const together = { ...step, difference: merged(last.difference, step.difference) };
    return { past: [...history.past.slice(0, -1), together], future: [] };
  }
  return { past: [...history.past, step].slice(-MAX_STEPS), future: [] };
}

export interface Moved {
  readonly document: WorkflowDocument;
  readonly history: History;
  readonly label: string;
}

export function undo(document: WorkflowDocument, history: History): Moved | null {
  const step = history.past.at(-1);
  if (!step) return null;
  return {
    document: move(document, step.difference, 0),
    history: { past: history.past.slice(0, -1), future: [step, ...history.future] },
    label: step.label,
  };
}

export function redo(document: WorkflowDocument, history: History): Moved | null {
  const step = history.future[0];
  if (!step) return null;
  return {
    document: move(document, step.difference, 1),
    history: { past: [...history.past, step], future: history.future.slice(1) },
    label: step.label,
  };
}
