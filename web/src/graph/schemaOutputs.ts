// Outputs that a JSON schema in a widget names: its properties, in their order, with their types.

import type { NodeDefinition, OutputDefinition } from "./definitions.ts";
import { asObject, asString, type Json } from "./json.ts";

const SOCKETS: Readonly<Record<string, string>> = {
  string: "STRING",
  integer: "INT",
  number: "FLOAT",
  boolean: "BOOLEAN",
};

/** An input with the option `names_outputs_from: n` holds a schema whose properties are the outputs from n on. */
export function namedOutputs(
  definition: NodeDefinition,
  values: Readonly<Record<string, Json>>,
): readonly OutputDefinition[] {
  const input = definition.inputs.find(({ options }) => typeof options.names_outputs_from === "number");
  if (!input) return definition.outputs;
  const first = Number(input.options.names_outputs_from);
  const properties = propertiesOf(asString(values[input.name] ?? input.options.default));
  const room = definition.outputs.length - first;
  const named = properties.slice(0, room).map(([name, schema]) => ({
    name,
    type: SOCKETS[asString(asObject(schema).type)] ?? "JSON",
    tooltip: asString(asObject(schema).description) || null,
  }));
  return [...definition.outputs.slice(0, first), ...named];
}

function propertiesOf(schema: string): [string, unknown][] {
  try {
    return Object.entries(asObject(asObject(JSON.parse(schema)).properties));
  } catch {
    return [];
  }
}
