// The open workflow: document, undo, selection. Rendering reads it; only the functions below write it.

import { create } from "zustand";
import { BUILTINS } from "../graph/builtin.ts";
import {
  type Command,
  copyNodes,
  nextNodeId,
  type Point,
  paste,
  removeLinks,
  removeNodes,
} from "../graph/commands.ts";
import type { Definitions } from "../graph/definitions.ts";
import * as history from "../graph/history.ts";
import { readWorkflow } from "../graph/readWorkflow.ts";
import { emptyDocument, type WorkflowDocument } from "../graph/records.ts";
import { writeWorkflow } from "../graph/writeWorkflow.ts";

export interface EditorState {
  readonly document: WorkflowDocument;
  readonly definitions: Definitions;
  readonly hasDefinitions: boolean;
  readonly history: history.History;
  readonly selectedNodes: ReadonlySet<string>;
  readonly selectedLinks: ReadonlySet<string>;
  readonly name: string;
  /** grows when another workflow is opened, so that the canvas can show all of it */
  readonly opened: number;
}

const NOTHING: ReadonlySet<string> = new Set();

export const useEditor = create<EditorState>(() => ({
  document: emptyDocument(freshId()),
  definitions: BUILTINS,
  hasDefinitions: false,
  history: history.NO_HISTORY,
  selectedNodes: NOTHING,
  selectedLinks: NOTHING,
  name: "Untitled",
  opened: 0,
}));

export function freshId(): string {
  // randomUUID exists only in secure contexts, and a server on the local network is none
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export function run(command: Command): void {
  const state = useEditor.getState();
  const document = command.apply(state.document, state.definitions);
  if (document === state.document) return;
  const step: history.Step = {
    label: command.label,
    mergeKey: command.mergeKey ?? null,
    time: Date.now(),
    difference: history.difference(state.document, document),
  };
  useEditor.setState({
    document,
    history: history.record(state.history, step),
    ...existing(state, document),
  });
}

/** Runs a command that adds nodes and selects what it added. */
export function runAndSelect(command: Command): void {
  const before = useEditor.getState().document;
  run(command);
  const { nodes } = useEditor.getState().document;
  selectNodes(new Set(Object.keys(nodes).filter((id) => !(id in before.nodes))));
}

function existing(
  state: EditorState,
  document: WorkflowDocument,
): Pick<EditorState, "selectedNodes" | "selectedLinks"> {
  const kept = (ids: ReadonlySet<string>, table: object) =>
    [...ids].every((id) => id in table) ? ids : new Set([...ids].filter((id) => id in table));
  return {
    selectedNodes: kept(state.selectedNodes, document.nodes),
    selectedLinks: kept(state.selectedLinks, document.links),
  };
}

export function undo(): void {
  step(history.undo);
}

export function redo(): void {
  step(history.redo);
}

function step(move: typeof history.undo): void {
  const state = useEditor.getState();
  const moved = move(state.document, state.history);
  if (!moved) return;
  useEditor.setState({
    document: moved.document,
    history: moved.history,
    ...existing(state, moved.document),
  });
}

export function selectNodes(ids: ReadonlySet<string>): void {
  useEditor.setState({ selectedNodes: ids, selectedLinks: NOTHING });
}

export function selectOnly(nodes: ReadonlySet<string>, links: ReadonlySet<string>): void {
  useEditor.setState({ selectedNodes: nodes, selectedLinks: links });
}

export function selectAll(): void {
  selectNodes(new Set(Object.keys(useEditor.getState().document.nodes)));
}

export function deleteSelection(): void {
  const { selectedNodes, selectedLinks } = useEditor.getState();
  if (selectedLinks.size > 0) run(removeLinks(selectedLinks));
  if (selectedNodes.size > 0) run(removeNodes(selectedNodes));
}

export function openDocument(document: WorkflowDocument, name: string): void {
  useEditor.setState((state) => ({
    document,
    name,
    history: history.NO_HISTORY,
    selectedNodes: NOTHING,
    selectedLinks: NOTHING,
    opened: state.opened + 1,
  }));
}

export function rename(name: string): void {
  useEditor.setState({ name: name.trim() || "Untitled" });
}

/** Nodes that were unknown so far are read again with their definitions; else the document stays as it is. */
export function setDefinitions(fromServer: Definitions): void {
  const state = useEditor.getState();
  const definitions = { ...fromServer, ...BUILTINS };
  const isNews = ({ type }: { readonly type: string }) => !(type in state.definitions) && type in definitions;
  useEditor.setState({ definitions, hasDefinitions: true });
  if (!Object.values(state.document.nodes).some(isNews)) return;
  const file = writeWorkflow(state.document, state.definitions);
  const { document } = readWorkflow(file, definitions, state.document.id);
  useEditor.setState({ document, history: history.NO_HISTORY });
}

const MARK = "treadle/nodes";

/** The selection as text for the clipboard; null when nothing is selected. */
export function copySelection(): string | null {
  const { document, definitions, selectedNodes } = useEditor.getState();
  if (selectedNodes.size === 0) return null;
  const fragment = { ...document, ...copyNodes(document, selectedNodes), groups: {}, rest: {} };
  return JSON.stringify({ kind: MARK, workflow: writeWorkflow(fragment, definitions) });
}

/** Pastes what `copySelection` wrote, at a point or a little aside; false when the text is something else. */
export function pasteText(text: string, at: Point | null): boolean {
  const { document, definitions } = useEditor.getState();
  const fragment = readFragment(text, definitions);
  const nodes = Object.values(fragment?.nodes ?? {});
  if (!fragment || nodes.length === 0) return false;
  const left = Math.min(...nodes.map((node) => node.x));
  const top = Math.min(...nodes.map((node) => node.y));
  const offset = at ? { x: at.x - left, y: at.y - top } : { x: 40, y: 40 };
  const first = nextNodeId(document);
  runAndSelect(paste(fragment, offset));
  return first in useEditor.getState().document.nodes;
}

function readFragment(text: string, definitions: Definitions): WorkflowDocument | null {
  try {
    const parsed = JSON.parse(text);
    return parsed?.kind === MARK ? readWorkflow(parsed.workflow, definitions, freshId()).document : null;
  } catch {
    return null;
  }
}
