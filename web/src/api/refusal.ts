// Why a prompt was refused: one sentence for the whole, and complaints for nodes and their inputs.

import { asList, asObject, asString, isObject } from "../graph/json.ts";
import { hostOf } from "./ids.ts";

export interface Complaint {
  /** null: about the node as a whole */
  readonly input: string | null;
  readonly message: string;
}

export interface Refusal {
  readonly message: string;
  readonly nodes: Readonly<Record<string, readonly Complaint[]>>;
}

export function readRefusal(body: unknown, fallback: string): Refusal {
  const answer = asObject(body);
  const error = asObject(answer.error);
  const nodes: Record<string, Complaint[]> = {};
  for (const [id, entry] of Object.entries(asObject(answer.node_errors))) {
    const complaints = asList(asObject(entry).errors).filter(isObject).map(readComplaint);
    nodes[hostOf(id)] = [...(nodes[hostOf(id)] ?? []), ...complaints];
  }
  const extra = asObject(error.extra_info);
  const nodeId = hostOf(asString(extra.node_id));
  const plain = typeof answer.error === "string" ? answer.error : asString(error.message);
  if (nodeId && !nodes[nodeId]) nodes[nodeId] = [{ input: null, message: plain }];
  return { message: plain || fallback, nodes };
}

function readComplaint(error: { readonly [key: string]: unknown }): Complaint {
  const message = asString(error.message) || "This node was refused.";
  const details = asString(error.details);
  const input = asString(asObject(error.extra_info).input_name) || null;
  const says = details !== "" && details !== input && !message.includes(details);
  return { input, message: says ? `${message}: ${details}` : message };
}
