// The value box: what it controls decides which widget it shows, and its value is copied, never linked.

import { REROUTE } from "./builtin.ts";
import type { Definitions, InputDefinition } from "./definitions.ts";
import { asNumber, type Json } from "./json.ts";
import type { WorkflowDocument } from "./records.ts";
import { inputsOf } from "./widgets.ts";

/** The first widget input that the box feeds, directly or through reroutes. */
export function primitiveTarget(
  document: WorkflowDocument,
  definitions: Definitions,
  id: string,
  visited: ReadonlySet<string> = new Set(),
): InputDefinition | null {
  if (visited.has(id)) return null;
  for (const link of Object.values(document.links)) {
    const target = link.source === id ? document.nodes[link.target] : undefined;
    if (!target) continue;
    const definition = definitions[target.type];
    const found =
      target.type === REROUTE
        ? primitiveTarget(document, definitions, target.id, new Set([...visited, id]))
        : definition && inputsOf(definition, target.values).find((input) => input.name === link.targetInput);
    if (found) return found;
  }
  return null;
}

/** The value as the target takes it: whole steps for INT, counted from its smallest value. */
export function fitted(value: Json, input: InputDefinition): Json {
  if (typeof value !== "number") return value;
  if (input.type === "INT") {
    const step = asNumber(input.options.step, 1) || 1;
    const shift = asNumber(input.options.min, 0) % step;
    return Math.round((value - shift) / step) * step + shift;
  }
  const round = asNumber(input.options.round, 0);
  return input.type === "FLOAT" && round > 0
    ? Number((Math.round(value / round) * round).toPrecision(12))
    : value;
}
