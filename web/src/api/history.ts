// The server's history of prompts, newest first, with what a list of them shows.

import { asList, asNumber, asObject, asString, isObject, type JsonObject } from "../graph/json.ts";
import { hostOf } from "./ids.ts";
import { type NodeOutput, readOutput } from "./output.ts";

export interface HistoryItem {
  readonly promptId: string;
  readonly state: "success" | "error" | "interrupted";
  readonly outputs: Readonly<Record<string, NodeOutput>>;
  readonly workflow: JsonObject | null;
  readonly prompt: JsonObject;
  readonly finishedAt: number | null;
  readonly durationMs: number | null;
  readonly error: string | null;
  readonly failedNode: string | null;
}

export function readHistory(answer: unknown): HistoryItem[] {
  return Object.entries(asObject(answer))
    .flatMap(([promptId, item]) => (isObject(item) ? [readItem(promptId, item)] : []))
    .reverse();
}

function readItem(promptId: string, item: JsonObject): HistoryItem {
  const prompt = asList(item.prompt);
  const workflow = asObject(asObject(prompt[3]).extra_pnginfo).workflow;
  const messages = new Map(
    asList(asObject(item.status).messages).map((message) => [
      asString(asList(message)[0]),
      asObject(asList(message)[1]),
    ]),
  );
  const failure = messages.get("execution_error");
  const interruption = messages.get("execution_interrupted");
  const startedAt = asNumber(messages.get("execution_start")?.timestamp, 0);
  const end = messages.get("execution_success") ?? failure ?? interruption;
  const finishedAt = asNumber(end?.timestamp, 0);
  const isSuccess = asObject(item.status).status_str === "success";
  return {
    promptId,
    state: isSuccess ? "success" : interruption ? "interrupted" : "error",
    outputs: readOutputs(item),
    workflow: isObject(workflow) ? workflow : null,
    prompt: asObject(prompt[2]),
    finishedAt: finishedAt || null,
    durationMs: startedAt && finishedAt ? finishedAt - startedAt : null,
    error: failure ? asString(failure.exception_message).trim() : null,
    failedNode: failure ? asString(failure.node_id) : null,
  };
}

/** By the box on the canvas that shows them. */
function readOutputs(item: JsonObject): Record<string, NodeOutput> {
  const meta = asObject(item.meta);
  const entries = Object.entries(asObject(item.outputs));
  return Object.fromEntries(
    entries.map(([id, output]) => [
      hostOf(asString(asObject(meta[id]).display_node) || id),
      readOutput(output),
    ]),
  );
}
