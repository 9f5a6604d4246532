// A line that tells one prompt from another: the longest text that a person wrote in it.

import { asList, asString, isObject, type JsonObject } from "../graph/json.ts";

const LONGEST = 90;

const HOLDS_WORDS = /text|string|prompt|template/i;

export function describe(workflow: JsonObject | null): string {
  const nodes = asList(workflow?.nodes).filter(isObject);
  const texts = nodes
    .filter((node) => HOLDS_WORDS.test(asString(node.type)))
    .flatMap((node) => asList(node.widgets_values))
    .filter((value): value is string => typeof value === "string" && value.trim() !== "");
  const longest = texts.sort((left, right) => right.length - left.length)[0];
  if (longest === undefined) return nodes.length > 0 ? `${nodes.length} nodes` : "Prompt from elsewhere";
  const line = longest.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

export function ago(time: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - time) / 1000));
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

export function lasting(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  return seconds < 60
    ? `${seconds.toFixed(1)} s`
    : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
