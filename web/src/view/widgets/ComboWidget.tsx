// COMBO: one of the choices. A saved value that is no choice any more stays, marked as missing.

import type { WidgetProps } from "./props.ts";

export function ComboWidget({ id, widget, value, onChange }: WidgetProps) {
  const choices = widget.input.choices ?? [];
  const at = choices.indexOf(value ?? null);
  const isMissing = at < 0 && value !== undefined && value !== null && value !== "";
  return (
    <select
      id={id}
      className={isMissing ? "missing" : ""}
      value={isMissing ? "missing" : String(at)}
      onChange={(event) => {
        const choice = choices[Number(event.target.value)];
        if (choice !== undefined) onChange(choice);
      }}
    >
      {isMissing && (
        <option value="missing" disabled>
          {String(value)} (missing)
        </option>
      )}
      {at < 0 && !isMissing && (
        <option value="-1" disabled>
          {choices.length === 0 ? "none installed" : "choose…"}
        </option>
      )}
      {choices.map((choice, index) => (
        <option key={String(choice)} value={String(index)}>
          {String(choice)}
        </option>
      ))}
    </select>
  );
}
