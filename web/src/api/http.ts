// The server's routes as functions. Answers are read tolerantly here; beyond this file they have types.

import { asList, asNumber, asObject, asString, isObject, type Json, type JsonObject } from "../graph/json.ts";
import type { Prompt } from "../graph/toPrompt.ts";
import { type HistoryItem, readHistory } from "./history.ts";
import type { StoredFile } from "./output.ts";
import { type Refusal, readRefusal } from "./refusal.ts";

const BASE = location.pathname.replace(/\/[^/]*$/, "");

export class ServerError extends Error {}

export class PromptRefused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export function webSocketAddress(clientId: string): string {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}${BASE}/ws?clientId=${encodeURIComponent(clientId)}`;
}

async function request(path: string, options: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(`${BASE}/api${path}`, options);
  } catch {
    throw new ServerError("The server does not answer. Is it running?");
  }
}

async function getJson(path: string): Promise<Json> {
  const answer = await request(path);
  if (!answer.ok) throw new ServerError(await reasonOf(answer, path));
  return (await answer.json()) as Json;
}

async function reasonOf(answer: Response, path: string): Promise<string> {
  const text = await answer.text();
  try {
    const error = asObject(JSON.parse(text)).error;
    const message = typeof error === "string" ? error : asString(asObject(error).message);
    if (message) return message;
  } catch {
    // not JSON: the status has to do
  }
  return `The server answered ${answer.status} to ${path}.`;
}

async function post(path: string, body: JsonObject): Promise<void> {
  const answer = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new ServerError(await reasonOf(answer, path));
}

export function fetchObjectInfo(): Promise<Json> {
  return getJson("/object_info");
}

export interface Example {
  readonly name: string;
  readonly title: string;
}

export async function fetchExamples(): Promise<Example[]> {
  const list = asList(await getJson("/examples")).filter(isObject);
  return list.map((entry) => ({
    name: asString(entry.name),
    title: asString(entry.title) || asString(entry.name),
  }));
}

export async function fetchExample(name: string): Promise<JsonObject> {
  return asObject(await getJson(`/examples/${encodeURIComponent(name)}`));
}

export interface Accepted {
  readonly promptId: string;
  /** some outputs may be refused although the prompt runs */
  readonly refusal: Refusal | null;
}

export async function postPrompt(prompt: Prompt, workflow: JsonObject, clientId: string): Promise<Accepted> {
  const body = { client_id: clientId, prompt, extra_data: { extra_pnginfo: { workflow } } };
  const answer = await request("/prompt", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const parsed = parseObject(text);
  if (!answer.ok) throw new PromptRefused(readRefusal(parsed, `The server answered ${answer.status}.`));
  const partly = Object.keys(asObject(parsed.node_errors)).length > 0;
  return {
    promptId: asString(parsed.prompt_id),
    refusal: partly ? readRefusal(parsed, "Some outputs were left out.") : null,
  };
}

function parseObject(text: string): JsonObject {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return {};
  }
}

export interface QueueItem {
  readonly promptId: string;
  readonly number: number;
  readonly isRunning: boolean;
  readonly outputs: readonly string[];
  readonly workflow: JsonObject | null;
}

export async function fetchQueue(): Promise<QueueItem[]> {
  const queue = asObject(await getJson("/queue"));
  const read = (key: string, isRunning: boolean) =>
    asList(queue[key]).map((item) => readQueueItem(asList(item), isRunning));
  const waiting = read("queue_pending", false).sort((left, right) => left.number - right.number);
  return [...read("queue_running", true), ...waiting];
}

function readQueueItem(item: readonly Json[], isRunning: boolean): QueueItem {
  const workflow = asObject(asObject(item[3]).extra_pnginfo).workflow;
  return {
    promptId: asString(item[1]),
    number: asNumber(item[0], 0),
    isRunning,
    outputs: asList(item[4]).map(String),
    workflow: isObject(workflow) ? workflow : null,
  };
}

export async function fetchHistory(count: number): Promise<HistoryItem[]> {
  return readHistory(await getJson(`/history?max_items=${count}`));
}

export async function fetchHistoryItem(promptId: string): Promise<HistoryItem | null> {
  return readHistory(await getJson(`/history/${encodeURIComponent(promptId)}`))[0] ?? null;
}

export function deleteHistory(promptIds: readonly string[]): Promise<void> {
  return post("/history", { delete: promptIds });
}

export function clearHistory(): Promise<void> {
  return post("/history", { clear: true });
}

export function deleteQueued(promptIds: readonly string[]): Promise<void> {
  return post("/queue", { delete: promptIds });
}

export function clearQueue(): Promise<void> {
  return post("/queue", { clear: true });
}

export function interrupt(promptId: string | null): Promise<void> {
  return post("/interrupt", promptId === null ? {} : { prompt_id: promptId });
}

/** Where a picture is served; `preview` asks for a small one. */
export function viewAddress(file: StoredFile, preview = false): string {
  const query = new URLSearchParams({ filename: file.filename, subfolder: file.subfolder, type: file.type });
  if (preview) query.set("preview", "webp;80");
  return `${BASE}/api/view?${query}`;
}

/** Stores a picture in the input folder; the answer is the name that a widget holds. */
export async function uploadImage(file: File): Promise<string> {
  const form = new FormData();
  form.append("image", file);
  const answer = await request("/upload/image", { method: "POST", body: form });
  if (!answer.ok) throw new ServerError(await reasonOf(answer, "/upload/image"));
  const stored = asObject(await answer.json());
  const folder = asString(stored.subfolder);
  return folder ? `${folder}/${asString(stored.name)}` : asString(stored.name);
}
