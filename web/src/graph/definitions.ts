// Node definitions out of the server's object_info. A malformed entry is left out, never a reason to stop.

import { asList, asObject, asString, isObject, type Json, type JsonObject } from "./json.ts";

export interface InputDefinition {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly options: JsonObject;
  /** the choices of a combo, null for other types */
  readonly choices: readonly Json[] | null;
}

export interface OutputDefinition {
  readonly name: string;
  readonly type: string;
  readonly tooltip: string | null;
}

export interface NodeDefinition {
  readonly type: string;
  readonly displayName: string;
  readonly category: string;
  readonly description: string;
  readonly inputs: readonly InputDefinition[];
  readonly outputs: readonly OutputDefinition[];
  readonly isOutput: boolean;
  readonly isDeprecated: boolean;
  readonly isExperimental: boolean;
  readonly aliases: readonly string[];
  readonly pythonModule: string;
}

export type Definitions = Readonly<Record<string, NodeDefinition>>;

export function readDefinitions(objectInfo: unknown): Definitions {
  const definitions: Record<string, NodeDefinition> = {};
  for (const [type, entry] of Object.entries(asObject(objectInfo))) {
    if (isObject(entry)) definitions[type] = readDefinition(type, entry);
  }
  return definitions;
}

function readDefinition(type: string, entry: JsonObject): NodeDefinition {
  return {
    type,
    displayName: asString(entry.display_name) || type,
    category: asString(entry.category),
    description: asString(entry.description),
    inputs: readInputs(entry),
    outputs: readOutputs(entry),
    isOutput: entry.output_node === true,
    isDeprecated: entry.deprecated === true,
    isExperimental: entry.experimental === true,
    aliases: asList(entry.search_aliases).filter((alias) => typeof alias === "string"),
    pythonModule: asString(entry.python_module),
  };
}

function readInputs(entry: JsonObject): InputDefinition[] {
  const input = asObject(entry.input);
  const order = asObject(entry.input_order);
  return (["required", "optional"] as const).flatMap((group) => readGroup(input[group], order[group], group));
}

/** Inputs of one group: those that input_order names, then any that it forgot. */
export function readGroup(group: unknown, order: unknown, kind: "required" | "optional"): InputDefinition[] {
  const entries = asObject(group);
  const named = asList(order).filter((name): name is string => typeof name === "string" && name in entries);
  const names = [...new Set([...named, ...Object.keys(entries)])];
  return names.flatMap((name) => readInput(name, entries[name], kind === "required"));
}

function readInput(name: string, entry: unknown, isRequired: boolean): InputDefinition[] {
  const parts = asList(entry);
  const head = parts[0];
  const options = asObject(parts[1]);
  if (Array.isArray(head)) return [{ name, type: "COMBO", isRequired, options, choices: head }];
  if (typeof head !== "string") return [];
  const choices = head === "COMBO" ? asList(options.options) : null;
  return [{ name, type: head, isRequired, options, choices }];
}

function readOutputs(entry: JsonObject): OutputDefinition[] {
  const names = asList(entry.output_name);
  const tooltips = asList(entry.output_tooltips);
  return asList(entry.output).map((output, index) => {
    const type = Array.isArray(output) ? "COMBO" : asString(output, "*");
    return {
      type: type === "COMFY_MATCHTYPE_V3" ? "*" : type,
      name: asString(names[index]) || type,
      tooltip: asString(tooltips[index]) || null,
    };
  });
}
