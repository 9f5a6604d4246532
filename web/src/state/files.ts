// Workflows in and out: files of several kinds, downloads, and the copy that the browser keeps.

import { fromPrompt, isPrompt } from "../graph/fromPrompt.ts";
import { asObject, type JsonObject } from "../graph/json.ts";
import { isPng, readPngTexts } from "../graph/png.ts";
import { isWorkflow, readWorkflow } from "../graph/readWorkflow.ts";
import { emptyDocument } from "../graph/records.ts";
import { toPrompt } from "../graph/toPrompt.ts";
import { writeWorkflow } from "../graph/writeWorkflow.ts";
import { freshId, openDocument, useEditor } from "./editor.ts";
import { say } from "./notices.ts";
import { forgetRuns } from "./session.ts";

const KEY = "treadle.workflow";
const SAVE_AFTER_MS = 400;

/** Opens JSON of either format; false when it is neither. */
export function openJson(value: unknown, name: string): boolean {
  const { definitions } = useEditor.getState();
  if (isWorkflow(value)) {
    const { document, warnings } = readWorkflow(value, definitions, freshId());
    openDocument(document, name);
    if (warnings[0])
      say(warnings.length === 1 ? warnings[0] : `${warnings[0]} (${warnings.length} warnings)`);
  } else if (isPrompt(value)) {
    openDocument(fromPrompt(value, definitions, freshId()), name);
  } else {
    return false;
  }
  forgetRuns();
  return true;
}

export function newWorkflow(): void {
  openDocument(emptyDocument(freshId()), "Untitled");
  forgetRuns();
}

export async function openFile(file: File): Promise<void> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const name = file.name.replace(/\.[^.]+$/, "");
  const found = isPng(bytes) ? await readFromPng(bytes) : parse(new TextDecoder().decode(bytes));
  if (found === null || !openJson(found, name)) say(`${file.name} holds no workflow.`, "bad");
}

async function readFromPng(bytes: Uint8Array): Promise<unknown> {
  const texts = await readPngTexts(bytes);
  const workflow = parse(texts.get("workflow") ?? "");
  return isWorkflow(workflow) ? workflow : parse(texts.get("prompt") ?? "");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function download(content: JsonObject, name: string): void {
  const address = URL.createObjectURL(
    new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }),
  );
  const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
  anchor.click();
  URL.revokeObjectURL(address);
}

export function saveWorkflow(): void {
  const { document, definitions, name } = useEditor.getState();
  download(writeWorkflow(document, definitions), `${name}.json`);
}

export function exportPrompt(): void {
  const { document, definitions, name } = useEditor.getState();
  try {
    download(toPrompt(document, definitions) as unknown as JsonObject, `${name}_api.json`);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), "bad");
  }
}

/** The workflow that the browser kept; null on a first visit. */
export function keptWorkflow(): { readonly workflow: JsonObject; readonly name: string } | null {
  const kept = asObject(parse(localStorage.getItem(KEY) ?? ""));
  return isWorkflow(kept.workflow)
    ? { workflow: kept.workflow, name: String(kept.name ?? "Untitled") }
    : null;
}

/** Keeps the open workflow in the browser from now on, a moment after each change. */
export function keepWorkflow(): void {
  let timer = 0;
  let isFull = false;
  const save = () => {
    const { document, definitions, name } = useEditor.getState();
    try {
      localStorage.setItem(KEY, JSON.stringify({ name, workflow: writeWorkflow(document, definitions) }));
      isFull = false;
    } catch {
      if (!isFull) say("The browser's store is full: this workflow is not kept. Save it as a file.", "bad");
      isFull = true;
    }
  };
  useEditor.subscribe((state, before) => {
    if (state.document === before.document && state.name === before.name) return;
    window.clearTimeout(timer);
    timer = window.setTimeout(save, SAVE_AFTER_MS);
  });
  window.addEventListener("pagehide", save);
}
