// The frames of the websocket as typed events; a frame that nobody knows is null.

import { asList, asNumber, asObject, asString, type JsonObject } from "../graph/json.ts";
import { hostOf } from "./ids.ts";
import { type NodeOutput, readOutput } from "./output.ts";

export type ServerEvent =
  | { readonly kind: "status"; readonly remaining: number; readonly clientId: string | null }
  | { readonly kind: "features"; readonly flags: JsonObject }
  | { readonly kind: "started"; readonly promptId: string }
  | { readonly kind: "cached"; readonly promptId: string; readonly nodes: readonly string[] }
  | { readonly kind: "executing"; readonly promptId: string; readonly node: string }
  | { readonly kind: "ended"; readonly promptId: string }
  | {
      readonly kind: "progress";
      readonly promptId: string;
      readonly nodes: Readonly<Record<string, NodeProgress>>;
    }
  | {
      readonly kind: "executed";
      readonly promptId: string;
      readonly node: string;
      readonly output: NodeOutput | null;
    }
  | { readonly kind: "succeeded"; readonly promptId: string }
  | { readonly kind: "interrupted"; readonly promptId: string; readonly node: string }
  | { readonly kind: "failed"; readonly promptId: string; readonly failure: Failure }
  | { readonly kind: "text"; readonly promptId: string; readonly node: string; readonly text: string }
  | { readonly kind: "preview"; readonly promptId: string; readonly node: string; readonly image: Blob };

export interface NodeProgress {
  readonly value: number;
  readonly max: number;
  readonly state: string;
}

export interface Failure {
  readonly node: string;
  readonly nodeType: string;
  readonly message: string;
  readonly exceptionType: string;
  readonly traceback: readonly string[];
}

export function readMessage(text: string): ServerEvent | null {
  const frame = parse(text);
  const data = asObject(frame.data);
  const promptId = asString(data.prompt_id);
  switch (frame.type) {
    case "status":
      return readStatus(data);
    case "feature_flags":
      return { kind: "features", flags: data };
    case "execution_start":
      return { kind: "started", promptId };
    case "execution_cached":
      return { kind: "cached", promptId, nodes: asList(data.nodes).map(String) };
    case "executing":
      return readExecuting(data, promptId);
    case "progress_state":
      return { kind: "progress", promptId, nodes: readProgress(asObject(data.nodes)) };
    case "executed":
      return {
        kind: "executed",
        promptId,
        node: boxOf(data),
        output: data.output ? readOutput(data.output) : null,
      };
    case "execution_success":
      return { kind: "succeeded", promptId };
    case "execution_interrupted":
      return { kind: "interrupted", promptId, node: hostOf(asString(data.node_id)) };
    case "execution_error":
      return { kind: "failed", promptId, failure: readFailure(data) };
    case "treadle.text":
      return { kind: "text", promptId, node: hostOf(asString(data.node)), text: asString(data.text) };
    default:
      return null;
  }
}

function parse(text: string): JsonObject {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return {};
  }
}

function readStatus(data: JsonObject): ServerEvent {
  const info = asObject(asObject(data.status).exec_info);
  return {
    kind: "status",
    remaining: asNumber(info.queue_remaining, 0),
    clientId: asString(data.sid) || null,
  };
}

function readExecuting(data: JsonObject, promptId: string): ServerEvent | null {
  if (data.node === null && promptId) return { kind: "ended", promptId };
  return promptId ? { kind: "executing", promptId, node: boxOf(data) } : null;
}

/** The box on the canvas where a node's work is shown: that of an instance for what is inside a subgraph. */
function boxOf(data: JsonObject): string {
  return hostOf(asString(data.display_node) || asString(data.node));
}

function readProgress(nodes: JsonObject): Record<string, NodeProgress> {
  const boxes: Record<string, NodeProgress> = {};
  for (const [id, entry] of Object.entries(nodes)) {
    const state = asObject(entry);
    const box = hostOf(asString(state.display_node_id) || id);
    // an expanded node is running as long as one of its parts is
    if (boxes[box]?.state === "running" && state.state !== "running") continue;
    boxes[box] = {
      value: asNumber(state.value, 0),
      max: asNumber(state.max, 1),
      state: asString(state.state),
    };
  }
  return boxes;
}

function readFailure(data: JsonObject): Failure {
  return {
    node: hostOf(asString(data.node_id)),
    nodeType: asString(data.node_type),
    message: asString(data.exception_message).trim() || "The node failed without a message.",
    exceptionType: asString(data.exception_type),
    traceback: asList(data.traceback).map(String),
  };
}

const PREVIEW_WITH_METADATA = 4;

/** Only previews that name their prompt are of use; plain ones and plain text frames are for other clients. */
export function readBinary(buffer: ArrayBuffer): ServerEvent | null {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0) !== PREVIEW_WITH_METADATA) return null;
  const length = view.getUint32(4);
  if (buffer.byteLength < 8 + length) return null;
  const about = parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const node = hostOf(asString(about.display_node_id) || asString(about.node_id));
  const image = new Blob([buffer.slice(8 + length)], { type: asString(about.image_type, "image/jpeg") });
  return { kind: "preview", promptId: asString(about.prompt_id), node, image };
}
