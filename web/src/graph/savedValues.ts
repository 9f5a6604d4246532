// Between a node's named values and the list by position that workflow files keep.

import { PRIMITIVE } from "./builtin.ts";
import type { NodeDefinition } from "./definitions.ts";
import { asList, asObject, isObject, type Json, type JsonObject } from "./json.ts";
import { controlMode, type Values, widgetsOf, withDefaults } from "./widgets.ts";

const PRIMITIVE_NAMES = ["value", "control_after_generate", "control_filter_list"];

/** The values of a saved node by name, with defaults for what the file lacks. */
export function readValues(definition: NodeDefinition, saved: JsonObject): Values {
  const list = savedList(definition, saved);
  if (definition.type === PRIMITIVE) {
    const named = PRIMITIVE_NAMES.map((name, index) => [name, list[index]] as const);
    return Object.fromEntries(named.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  }
  const named = list.length === 0 ? asObject(saved.widgets_values_named) : {};
  const values = list.length === 0 ? byName(definition, named) : byPosition(definition, list);
  return repaired(definition, withDefaults(definition, values));
}

function savedList(definition: NodeDefinition, saved: JsonObject): readonly Json[] {
  const values = saved.widgets_values;
  if (isObject(values)) return Object.values(values).map((value) => value ?? null);
  return withoutForced(definition, asList(values));
}

function byName(definition: NodeDefinition, named: JsonObject): Values {
  const values: Record<string, Json> = {};
  const names = new Set(widgetsOf(definition, asObjectOfValues(named)).map((widget) => widget.name));
  for (const [name, value] of Object.entries(named)) {
    if (value !== undefined && names.has(name)) values[name] = value;
  }
  return values;
}

function asObjectOfValues(named: JsonObject): Values {
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Walks the live list: a dynamic combo that gets its choice brings widgets, and they take the next values. */
function byPosition(definition: NodeDefinition, list: readonly Json[]): Values {
  const values: Record<string, Json> = {};
  for (const [index, value] of list.entries()) {
    const widget = widgetsOf(definition, values).filter((candidate) => candidate.isSaved)[index];
    if (!widget) break;
    values[widget.name] = value;
  }
  return values;
}

/** Files from before sockets were separate list a value for each forced socket too; those are left out. */
function withoutForced(definition: NodeDefinition, list: readonly Json[]): readonly Json[] {
  const plain = definition.inputs.filter((input) =>
    ["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"].includes(input.type),
  );
  const isForced = (index: number) =>
    plain[index]?.options.forceInput === true ||
    (plain[index]?.options.defaultInput === true && !plain[index]?.isRequired);
  const spread = plain.flatMap((input, index) =>
    controlMode(input) === null || isForced(index) ? [isForced(index)] : [false, false],
  );
  if (!spread.includes(true) || spread.length !== list.length) return list;
  return list.filter((_, index) => !spread[index]);
}

function repaired(definition: NodeDefinition, values: Values): Values {
  const fixed: Record<string, Json> = { ...values };
  for (const widget of widgetsOf(definition, values)) {
    const value = fixed[widget.name];
    if (widget.kind === "combo" && value === null && widget.initial !== undefined)
      fixed[widget.name] = widget.initial;
    if (widget.kind === "control" && typeof value === "boolean")
      fixed[widget.name] = value ? "randomize" : "fixed";
    if (widget.name === "sampler_name" && typeof value === "string")
      fixed[widget.name] = value.replace(/^sample_/, "");
  }
  return fixed;
}

export function writeValues(definition: NodeDefinition, values: Values): Json[] {
  if (definition.type === PRIMITIVE) {
    const present = PRIMITIVE_NAMES.map((name) => values[name]);
    return present
      .slice(0, present.findLastIndex((value) => value !== undefined) + 1)
      .map((value) => value ?? null);
  }
  return widgetsOf(definition, values)
    .filter((widget) => widget.isSaved)
    .map((widget) => (widget.name in values ? values[widget.name] : widget.initial) ?? null);
}
