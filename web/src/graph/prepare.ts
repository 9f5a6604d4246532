// What is settled in the moment of queueing: `{a|b}` choices of dynamic prompts and `%Node.widget%` in file
// names. The settled text also goes into the saved workflow, so that it says what was really run.

import type { Command } from "./commands.ts";
import type { Definitions } from "./definitions.ts";
import { asString, type Json } from "./json.ts";
import type { GraphNode, WorkflowDocument } from "./records.ts";
import { type Widget, widgetsOf } from "./widgets.ts";

export function settle(random: () => number, now: Date): Command {
  return {
    label: "Settle texts",
    apply: (document, definitions) => {
      const nodes = Object.values(document.nodes).map((node) =>
        settledNode(document, definitions, node, random, now),
      );
      return { ...document, nodes: Object.fromEntries(nodes.map((node) => [node.id, node])) };
    },
  };
}

function settledNode(
  document: WorkflowDocument,
  definitions: Definitions,
  node: GraphNode,
  random: () => number,
  now: Date,
): GraphNode {
  const definition = definitions[node.type];
  if (!definition) return node;
  const values: Record<string, Json> = { ...node.values };
  for (const widget of widgetsOf(definition, node.values)) {
    const value = values[widget.name];
    if (typeof value !== "string" || widget.kind !== "text") continue;
    values[widget.name] = settledText(document, widget, value, random, now);
  }
  return { ...node, values };
}

function settledText(
  document: WorkflowDocument,
  widget: Widget,
  text: string,
  random: () => number,
  now: Date,
): string {
  if (widget.input.options.dynamicPrompts === true) return chooseVariants(text, random);
  return widget.name === "filename_prefix" ? fillTokens(text, document, now) : text;
}

/** Drops comments, then takes one of each `{a|b|{c|d}}`; `\{`, `\|` and `\}` stand for themselves. */
export function chooseVariants(text: string, random: () => number): string {
  const plain = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const reader = { text: plain, at: 0 };
  return readVariants(reader, false, random).join("|");
}

interface Reader {
  readonly text: string;
  at: number;
}

function readVariants(reader: Reader, isInside: boolean, random: () => number): string[] {
  const variants = [""];
  const append = (part: string) => {
    variants[variants.length - 1] += part;
  };
  while (reader.at < reader.text.length) {
    const letter = reader.text[reader.at++] ?? "";
    const next = reader.text[reader.at] ?? "";
    if (letter === "\\" && "{}|".includes(next) && next !== "") {
      append(next);
      reader.at++;
    } else if (letter === "{") {
      const inner = readVariants(reader, true, random);
      append(inner[Math.floor(random() * inner.length)] ?? "");
    } else if (letter === "}" && isInside) {
      return variants;
    } else if (letter === "|" && isInside) {
      variants.push("");
    } else {
      append(letter);
    }
  }
  return variants;
}

/** Names that are not known here (`%width%`, `%height%`) stay for the server. */
export function fillTokens(text: string, document: WorkflowDocument, now: Date): string {
  return text.replace(/%([^%]+)%/g, (whole, token: string) => {
    if (token.startsWith("date:")) return formatDate(token.slice("date:".length), now);
    const [name, widget] = token.split(".");
    const node = Object.values(document.nodes).find((candidate) => nameOf(candidate) === name);
    const value = widget === undefined ? undefined : node?.values[widget];
    return value === undefined ? whole : String(value).replace(/[/?<>\\:*|"\p{Cc}]/gu, "_");
  });
}

function nameOf(node: GraphNode): string {
  const properties = node.rest.properties;
  const name = typeof properties === "object" && properties !== null && !Array.isArray(properties);
  const saved = name ? asString((properties as Record<string, Json>)["Node name for S&R"]) : "";
  return saved || node.title || node.type;
}

function formatDate(format: string, now: Date): string {
  const parts: Record<string, number> = {
    yyyy: now.getFullYear(),
    yy: now.getFullYear() % 100,
    MM: now.getMonth() + 1,
    M: now.getMonth() + 1,
    dd: now.getDate(),
    d: now.getDate(),
    hh: now.getHours(),
    h: now.getHours(),
    mm: now.getMinutes(),
    m: now.getMinutes(),
    ss: now.getSeconds(),
    s: now.getSeconds(),
  };
  return format.replace(/yyyy|yy|MM|M|dd|d|hh|h|mm|m|ss|s/g, (part) =>
    String(parts[part] ?? "").padStart(part.length, "0"),
  );
}
