// BOOLEAN: a switch with the words that the node gives its two states.

import { asString } from "../../graph/json.ts";
import type { WidgetProps } from "./props.ts";

export function ToggleWidget({ id, widget, value, onChange }: WidgetProps) {
  const { options } = widget.input;
  const isOn = value === true;
  const word = isOn ? asString(options.label_on, "on") : asString(options.label_off, "off");
  return (
    <span className="toggle">
      <span className="toggle-word">{word}</span>
      <button id={id} type="button" role="switch" aria-checked={isOn} onClick={() => onChange(!isOn)} />
    </span>
  );
}
