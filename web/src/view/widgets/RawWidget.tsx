// A value of a kind that has no control here: shown as it is, kept, and sent unchanged.

import type { WidgetProps } from "./props.ts";

export function RawWidget({ id, value }: WidgetProps) {
  const text = value === undefined ? "not set" : typeof value === "string" ? value : JSON.stringify(value);
  return (
    <output id={id} className="raw" title="This kind of value cannot be edited here; it is kept as it is.">
      {text}
    </output>
  );
}
