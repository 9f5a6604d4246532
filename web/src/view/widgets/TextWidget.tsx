// STRING: one line, or an area that takes the room that the node has.

import { asString } from "../../graph/json.ts";
import type { WidgetProps } from "./props.ts";

export function TextWidget({ id, widget, value, label, onChange }: WidgetProps) {
  const { options } = widget.input;
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
  const placeholder = asString(options.placeholder);
  if (options.multiline !== true) {
    return (
      <input
        id={id}
        className="text"
        value={text}
        placeholder={placeholder}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  return (
    <textarea
      id={id}
      className="text nowheel"
      aria-label={label}
      value={text}
      placeholder={placeholder || label}
      spellCheck={false}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
