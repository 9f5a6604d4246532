// The ordered widgets of a node: which inputs carry a value, which of those are saved and which are sent.
// The order is ComfyUI's, because workflow files list values by position.

import { type InputDefinition, type NodeDefinition, readGroup } from "./definitions.ts";
import { asList, asObject, asString, isObject, type Json } from "./json.ts";

export type WidgetKind =
  | "int"
  | "float"
  | "text"
  | "boolean"
  | "combo"
  | "control"
  | "filter"
  | "button"
  | "raw";

export interface Widget {
  readonly name: string;
  readonly kind: WidgetKind;
  readonly input: InputDefinition;
  readonly isSaved: boolean;
  readonly isSent: boolean;
  /** undefined: nothing is sent until a value is chosen */
  readonly initial: Json | undefined;
}

export type Values = Readonly<Record<string, Json>>;

export const CONTROL = "control_after_generate";
const DYNAMIC_COMBO = "COMFY_DYNAMICCOMBO_V3";
const TEXT_TYPES = ["STRING", "MARKDOWN", "TEXTAREA", "COLOR"];
const RAW_TYPES = [
  "COLORS",
  "BOUNDING_BOXES",
  "CURVE",
  "RANGE",
  "CHART",
  "GALLERIA",
  "PAINTER",
  "COMPOSITOR",
];
const WIDGET_TYPES = new Set([
  "INT",
  "FLOAT",
  "BOOLEAN",
  "COMBO",
  DYNAMIC_COMBO,
  ...TEXT_TYPES,
  ...RAW_TYPES,
]);

export function isWidgetInput(input: InputDefinition): boolean {
  const { options } = input;
  if (options.forceInput === true) return false;
  if (options.defaultInput === true && !input.isRequired) return false;
  return WIDGET_TYPES.has(asString(options.widgetType) || input.type);
}

/** All inputs of a node, with the children of dynamic combos unfolded by the values so far. */
export function inputsOf(definition: NodeDefinition, values: Values): InputDefinition[] {
  return definition.inputs.flatMap((input) => unfold(input, values));
}

function unfold(input: InputDefinition, values: Values): InputDefinition[] {
  if (input.type !== DYNAMIC_COMBO) return [input];
  const options = asList(input.options.options).map(asObject);
  const key = values[input.name] ?? options[0]?.key;
  const chosen = asObject(options.find((option) => option.key === key)?.inputs);
  const children = (["required", "optional"] as const).flatMap((kind) => readGroup(chosen[kind], [], kind));
  const choices = options.flatMap((option) => (typeof option.key === "string" ? [option.key] : []));
  return [
    { ...input, choices },
    ...children.flatMap((child) => unfold({ ...child, name: `${input.name}.${child.name}` }, values)),
  ];
}

export function widgetsOf(definition: NodeDefinition, values: Values): Widget[] {
  const inputs = inputsOf(definition, values);
  const widgets = inputs.filter(isWidgetInput).flatMap((input) => widgetsOfInput(input));
  const upload = inputs.find((input) => input.isRequired && uploadKind(input) !== null);
  if (upload) widgets.push(uploadButton(upload));
  return withOwnNames(widgets);
}

/** Two seeds of one node would both have a `control_after_generate`; the second is named after its input. */
function withOwnNames(widgets: Widget[]): Widget[] {
  const seen = new Set<string>();
  return widgets.map((widget) => {
    const name = seen.has(widget.name) ? `${widget.input.name}.${widget.name}` : widget.name;
    seen.add(name);
    return name === widget.name ? widget : { ...widget, name };
  });
}

export function socketInputsOf(definition: NodeDefinition, values: Values): InputDefinition[] {
  return inputsOf(definition, values).filter((input) => !isWidgetInput(input));
}

export function uploadKind(input: InputDefinition): "image" | "video" | "audio" | null {
  if (input.type !== "COMBO") return null;
  if (input.options.image_upload === true || input.options.animated_image_upload === true) return "image";
  if (input.options.video_upload === true) return "video";
  return input.options.audio_upload === true ? "audio" : null;
}

function uploadButton(input: InputDefinition): Widget {
  const initial = uploadKind(input) === "audio" ? "" : "image";
  return { name: "upload", kind: "button", input, isSaved: true, isSent: false, initial };
}

function widgetsOfInput(input: InputDefinition): Widget[] {
  const kind = kindOf(input);
  const value: Widget = {
    name: input.name,
    kind,
    input,
    isSaved: true,
    isSent: true,
    initial: initialOf(input, kind),
  };
  const mode = controlMode(input);
  if (mode === null) return [value];
  const control: Widget = {
    name: controlName(input),
    kind: "control",
    input,
    isSaved: true,
    isSent: false,
    initial: mode,
  };
  if (kind !== "combo") return [value, control];
  return [value, control, { ...control, name: "control_filter_list", kind: "filter", initial: "" }];
}

function kindOf(input: InputDefinition): WidgetKind {
  const type = asString(input.options.widgetType) || input.type;
  if (type === "INT") return "int";
  if (type === "FLOAT") return "float";
  if (type === "BOOLEAN") return "boolean";
  if (type === "COMBO") return isObject(input.options.multi_select) ? "raw" : "combo";
  if (type === DYNAMIC_COMBO) return "combo";
  return TEXT_TYPES.includes(type) ? "text" : "raw";
}

function initialOf(input: InputDefinition, kind: WidgetKind): Json | undefined {
  const given = input.options.default;
  switch (kind) {
    case "int":
    case "float":
      return given ?? 0;
    case "boolean":
      return given ?? false;
    case "text":
      return given ?? "";
    case "combo":
      return given ?? input.choices?.[0];
    default:
      return given ?? (isObject(input.options.multi_select) ? [] : undefined);
  }
}

const MODES = ["fixed", "increment", "decrement", "randomize", "increment-wrap"];

/** The first mode of the control beside a value, null when the value has none. */
export function controlMode(input: InputDefinition): string | null {
  const option = input.options[CONTROL];
  const isSeed = input.name === "seed" || input.name === "noise_seed";
  if (!["INT", "FLOAT", "COMBO"].includes(input.type)) return null;
  if (option === undefined ? !(isSeed && input.type === "INT") : !option) return null;
  if (typeof option === "string" && MODES.includes(option)) return option;
  return input.type === "FLOAT" ? "fixed" : "randomize";
}

export function controlName(input: InputDefinition): string {
  const option = input.options[CONTROL];
  const isName = typeof option === "string" && option !== "" && !MODES.includes(option);
  const parent = input.name.split(".").slice(0, -1);
  return isName ? option : [...parent, CONTROL].join(".");
}

export function initialValues(definition: NodeDefinition): Values {
  return withDefaults(definition, {});
}

/** Every widget has a value afterwards. Repeats, because a chosen option may bring more widgets. */
export function withDefaults(definition: NodeDefinition, values: Values): Values {
  const filled: Record<string, Json> = { ...values };
  let before = -1;
  while (before !== Object.keys(filled).length) {
    before = Object.keys(filled).length;
    for (const widget of widgetsOf(definition, filled)) {
      if (filled[widget.name] === undefined && widget.initial !== undefined)
        filled[widget.name] = widget.initial;
    }
  }
  return filled;
}
