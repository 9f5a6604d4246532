// COMBO: one of the choices. A saved value that is no choice any more stays, marked as missing.

import { useState } from "react";
import type { WidgetProps } from "./props.ts";

export function ComboWidget({ id, widget, value, onChange }: WidgetProps) {
  const choices = widget.input.choices ?? [];
  const at = choices.indexOf(value ?? null);
  const isMissing = at < 0 && value !== undefined && value !== null && value !== "";
  // long lists on many nodes are thousands of elements; the others come when the list may be opened
  const [isReached, setIsReached] = useState(false);
  const offered = choices
    .map((choice, index) => ({ choice, index }))
    .filter(({ index }) => isReached || index === at);
  return (
    <select
      id={id}
      onPointerEnter={() => setIsReached(true)}
      onFocus={() => setIsReached(true)}
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
      {offered.map(({ choice, index }) => (
        <option key={String(choice)} value={String(index)}>
          {String(choice)}
        </option>
      ))}
    </select>
  );
}
