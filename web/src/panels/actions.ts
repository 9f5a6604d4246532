// Everything that can be done by menu or key, once. Menus, keys and the list of shortcuts read this.

import { toggleCollapsed, toggleMode } from "../graph/commands.ts";
import { arrange } from "../graph/layout.ts";
import { NodeMode } from "../graph/records.ts";
import * as editor from "../state/editor.ts";
import { exportPrompt, newWorkflow, openFile, saveWorkflow } from "../state/files.ts";
import { say, telling } from "../state/notices.ts";
import { interrupt, queuePrompt, refreshDefinitions } from "../state/session.ts";
import { change, useSettings } from "../state/settings.ts";
import { fitView, openPalette, placeForNew, zoomBy, zoomToFull } from "../view/flow.ts";
import { openDialog } from "./dialogs.ts";

export interface Action {
  readonly label: string;
  /** as `Ctrl+Shift+Z`; Ctrl is Command on a Mac */
  readonly keys: readonly string[];
  /** also while a field is being typed in */
  readonly worksInFields?: boolean;
  readonly perform: () => void;
}

const selection = () => editor.useEditor.getState().selectedNodes;

export const ACTIONS = {
  run: { label: "Run", keys: ["Ctrl+Enter"], worksInFields: true, perform: () => telling(queuePrompt()) },
  interrupt: {
    label: "Interrupt",
    keys: ["Ctrl+Alt+Enter"],
    worksInFields: true,
    perform: () => telling(interrupt()),
  },
  add: { label: "Add a node", keys: ["Space", "Shift+A", "/"], perform: () => openPalette() },
  newWorkflow: { label: "New workflow", keys: ["Alt+N"], perform: newWorkflow },
  open: { label: "Open…", keys: ["Ctrl+O"], worksInFields: true, perform: pickFile },
  save: { label: "Save", keys: ["Ctrl+S"], worksInFields: true, perform: saveWorkflow },
  exportPrompt: {
    label: "Export for the API",
    keys: ["Ctrl+Shift+S"],
    worksInFields: true,
    perform: exportPrompt,
  },
  undo: { label: "Undo", keys: ["Ctrl+Z"], perform: editor.undo },
  redo: { label: "Redo", keys: ["Ctrl+Shift+Z", "Ctrl+Y"], perform: editor.redo },
  selectAll: { label: "Select all", keys: ["Ctrl+A"], perform: editor.selectAll },
  duplicate: { label: "Duplicate", keys: ["Ctrl+D"], perform: duplicate },
  remove: { label: "Delete", keys: ["Delete", "Backspace"], perform: editor.deleteSelection },
  bypass: {
    label: "Bypass",
    keys: ["Ctrl+B"],
    perform: () => editor.run(toggleMode(selection(), NodeMode.bypass)),
  },
  mute: {
    label: "Mute",
    keys: ["Ctrl+M"],
    perform: () => editor.run(toggleMode(selection(), NodeMode.mute)),
  },
  collapse: { label: "Fold", keys: ["Alt+C"], perform: () => editor.run(toggleCollapsed(selection())) },
  arrange: { label: "Arrange nodes", keys: ["Alt+Shift+T"], perform: arrangeAll },
  fit: { label: "Show selection or all", keys: ["."], perform: () => fitView(selection()) },
  zoomIn: { label: "Zoom in", keys: ["Alt+="], perform: () => zoomBy(1.25) },
  zoomOut: { label: "Zoom out", keys: ["Alt+-"], perform: () => zoomBy(0.8) },
  fullSize: { label: "Full size", keys: ["1"], perform: zoomToFull },
  minimap: {
    label: "Overview",
    keys: ["Alt+Shift+M"],
    perform: () => change({ hasMinimap: !useSettings.getState().hasMinimap }),
  },
  refresh: { label: "Refresh nodes and files", keys: ["R"], perform: refresh },
  queue: { label: "Queue panel", keys: ["Q"], perform: () => togglePanel("queue") },
  history: { label: "History panel", keys: ["H"], perform: () => togglePanel("history") },
  settings: { label: "Settings", keys: ["Ctrl+,"], perform: () => openDialog("settings") },
  shortcuts: { label: "Shortcuts", keys: ["?"], perform: () => openDialog("shortcuts") },
} satisfies Readonly<Record<string, Action>>;

export type ActionName = keyof typeof ACTIONS;

function duplicate(): void {
  const copied = editor.copySelection();
  if (copied) editor.pasteText(copied, null);
}

function arrangeAll(): void {
  editor.run(arrange());
  window.setTimeout(() => fitView(), 30);
}

function refresh(): void {
  telling(refreshDefinitions().then(() => say("Nodes and files are up to date.", "good")));
}

function togglePanel(panel: "queue" | "history"): void {
  change({ panel: useSettings.getState().panel === panel ? "none" : panel });
}

function pickFile(): void {
  const picker = Object.assign(document.createElement("input"), {
    type: "file",
    accept: ".json,.png,image/png",
  });
  picker.onchange = () => {
    const file = picker.files?.[0];
    if (file) telling(openFile(file));
  };
  picker.click();
}

/** Copy, cut and paste come as events of the page, with the text of the clipboard. */
export function onCopy(event: ClipboardEvent): void {
  const text = editor.copySelection();
  if (text === null) return;
  event.clipboardData?.setData("text/plain", text);
  event.preventDefault();
  if (event.type === "cut") editor.deleteSelection();
}

export function onPaste(event: ClipboardEvent): void {
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (editor.pasteText(text, placeForNew())) event.preventDefault();
}
