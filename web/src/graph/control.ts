// The value after this one: what `control_after_generate` does once a prompt has been queued.

import { PRIMITIVE } from "./builtin.ts";
import type { Command } from "./commands.ts";
import type { Definitions, InputDefinition } from "./definitions.ts";
import { asNumber, type Json } from "./json.ts";
import { primitiveTarget } from "./primitive.ts";
import type { GraphNode, WorkflowDocument } from "./records.ts";
import { widgetsOf } from "./widgets.ts";

export type ControlMode = "fixed" | "increment" | "decrement" | "randomize" | "increment-wrap";
export const CONTROL_MODES: readonly ControlMode[] = ["fixed", "increment", "decrement", "randomize"];

const LARGEST = 2 ** 50;

export function nextValue(
  input: InputDefinition,
  value: Json,
  mode: Json,
  filter: Json,
  random: () => number,
): Json {
  if (input.choices) return nextChoice(input.choices, value, mode, filter, random);
  if (typeof value !== "number") return value;
  const step = asNumber(input.options.step, 1) || 1;
  const low = Math.max(asNumber(input.options.min, 0), -LARGEST);
  const high = Math.min(asNumber(input.options.max, LARGEST), LARGEST);
  const clamp = (candidate: number) => Math.min(Math.max(candidate, low), high);
  switch (mode) {
    case "increment":
      return clamp(value + step);
    case "decrement":
      return clamp(value - step);
    case "increment-wrap":
      return value + step > high ? low : clamp(value + step);
    case "randomize":
      return Math.floor((random() * (high - low)) / step) * step + low;
    default:
      return value;
  }
}

function nextChoice(all: readonly Json[], value: Json, mode: Json, filter: Json, random: () => number): Json {
  const choices = filtered(all, filter);
  const last = choices.length - 1;
  const at = choices.indexOf(value);
  const pick = (index: number) => choices[index] ?? value;
  if (last < 0) return value;
  switch (mode) {
    case "increment":
      return pick(Math.min(at + 1, last));
    case "decrement":
      return pick(Math.max(at - 1, 0));
    case "increment-wrap":
      return pick((at + 1) % choices.length);
    case "randomize":
      return pick(Math.floor(random() * choices.length));
    default:
      return value;
  }
}

function filtered(choices: readonly Json[], filter: Json): readonly Json[] {
  if (typeof filter !== "string" || filter === "") return choices;
  const pattern = /^\/(.*)\/$/.exec(filter)?.[1];
  if (pattern === undefined) {
    return choices.filter((choice) => String(choice).toLowerCase().includes(filter.toLowerCase()));
  }
  try {
    const expression = new RegExp(pattern);
    return choices.filter((choice) => expression.test(String(choice)));
  } catch {
    return choices; // a half-typed expression limits nothing
  }
}

/** Steps every controlled value of the workflow on. */
export function advanceControls(random: () => number): Command {
  return {
    label: "Next seed",
    apply: (document, definitions) => {
      const changed = Object.values(document.nodes).flatMap((node) => {
        const values = advanced(document, definitions, node, random);
        return values ? [{ ...node, values }] : [];
      });
      if (changed.length === 0) return document;
      return {
        ...document,
        nodes: { ...document.nodes, ...Object.fromEntries(changed.map((node) => [node.id, node])) },
      };
    },
  };
}

function advanced(
  document: WorkflowDocument,
  definitions: Definitions,
  node: GraphNode,
  random: () => number,
): GraphNode["values"] | null {
  const values = { ...node.values };
  for (const { name, input, control } of controlledValues(document, definitions, node)) {
    const value = values[name];
    if (value === undefined) continue;
    values[name] = nextValue(
      input,
      value,
      values[control] ?? "fixed",
      values.control_filter_list ?? "",
      random,
    );
  }
  return Object.keys(values).some((name) => values[name] !== node.values[name]) ? values : null;
}

interface Controlled {
  readonly name: string;
  readonly control: string;
  readonly input: InputDefinition;
}

function controlledValues(
  document: WorkflowDocument,
  definitions: Definitions,
  node: GraphNode,
): Controlled[] {
  if (node.type === PRIMITIVE) {
    const target = primitiveTarget(document, definitions, node.id);
    return target ? [{ name: "value", control: "control_after_generate", input: target }] : [];
  }
  const definition = definitions[node.type];
  if (!definition) return [];
  const isLinked = (input: string) =>
    Object.values(document.links).some((link) => link.target === node.id && link.targetInput === input);
  return widgetsOf(definition, node.values)
    .filter((widget) => widget.kind === "control" && !isLinked(widget.input.name))
    .map((widget) => ({ name: widget.input.name, control: widget.name, input: widget.input }));
}
