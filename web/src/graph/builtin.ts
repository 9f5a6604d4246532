// Boxes that live in the editor alone: notes, reroutes and the value box. The server never hears of them.

import type { Definitions, NodeDefinition } from "./definitions.ts";

export const REROUTE = "Reroute";
export const PRIMITIVE = "PrimitiveNode";
const NOTES = ["Note", "MarkdownNote"];

export function isEditorOnly(type: string): boolean {
  return type === REROUTE || type === PRIMITIVE || NOTES.includes(type);
}

export function isNote(type: string): boolean {
  return NOTES.includes(type);
}

function builtin(type: string, displayName: string, parts: Partial<NodeDefinition>): NodeDefinition {
  return {
    type,
    displayName,
    category: "editor",
    description: "",
    inputs: [],
    outputs: [],
    isOutput: false,
    isDeprecated: false,
    isExperimental: false,
    aliases: [],
    pythonModule: "editor",
    ...parts,
  };
}

const text = { name: "text", type: "STRING", isRequired: true, options: { multiline: true }, choices: null };
const anything = { name: "", type: "*", isRequired: false, options: {}, choices: null };

export const BUILTINS: Definitions = {
  Note: builtin("Note", "Note", { inputs: [text], description: "Words beside the graph." }),
  MarkdownNote: builtin("MarkdownNote", "Markdown note", { inputs: [text] }),
  [REROUTE]: builtin(REROUTE, "Reroute", {
    inputs: [anything],
    outputs: [{ name: "", type: "*", tooltip: null }],
    description: "A point that a link passes through.",
  }),
  [PRIMITIVE]: builtin(PRIMITIVE, "Value", {
    outputs: [{ name: "value", type: "*", tooltip: null }],
    description: "One value for the widgets that it is connected to.",
    aliases: ["primitive"],
  }),
};
