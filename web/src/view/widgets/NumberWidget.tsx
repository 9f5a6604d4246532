// INT and FLOAT: typed, stepped with the arrow keys or the two buttons, kept inside the range.

import { type KeyboardEvent, useState } from "react";
import { asNumber } from "../../graph/json.ts";
import type { WidgetProps } from "./props.ts";

const LARGEST = Number.MAX_SAFE_INTEGER;

export function NumberWidget({ id, widget, value, label, onChange }: WidgetProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const { options } = widget.input;
  const isWhole = widget.kind === "int";
  const low = Math.max(asNumber(options.min, -LARGEST), -LARGEST);
  const high = Math.min(asNumber(options.max, LARGEST), LARGEST);
  const step = asNumber(options.step, isWhole ? 1 : 0.1) || (isWhole ? 1 : 0.1);
  const shown = draft ?? written(value, isWhole);

  const settle = (number: number) =>
    onChange(Math.min(Math.max(isWhole ? Math.round(number) : number, low), high));
  const stepBy = (count: number) => {
    setDraft(null);
    // whole multiples of the step, free of the dust of binary fractions
    settle(Number((asNumber(Number(shown), 0) + count * step).toPrecision(12)));
  };
  const type = (text: string) => {
    setDraft(text);
    const number = text.trim() === "" ? Number.NaN : Number(text.replace(",", "."));
    if (Number.isFinite(number) && number >= low && number <= high) settle(number);
  };
  const leave = () => {
    const number = Number(shown.replace(",", "."));
    if (draft !== null && draft.trim() !== "" && Number.isFinite(number)) settle(number);
    setDraft(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowUp") stepBy(event.shiftKey ? 10 : 1);
    else if (event.key === "ArrowDown") stepBy(event.shiftKey ? -10 : -1);
    else if (event.key === "Enter" && !event.ctrlKey) leave();
    else return;
    event.preventDefault();
  };

  return (
    <span className="number">
      <button type="button" tabIndex={-1} aria-label={`Less ${label}`} onClick={() => stepBy(-1)}>
        −
      </button>
      <input
        id={id}
        inputMode={isWhole ? "numeric" : "decimal"}
        role="spinbutton"
        aria-valuenow={asNumber(value, 0)}
        aria-valuemin={low}
        aria-valuemax={high}
        autoComplete="off"
        value={shown}
        onChange={(event) => type(event.target.value)}
        onBlur={leave}
        onKeyDown={onKeyDown}
      />
      <button type="button" tabIndex={-1} aria-label={`More ${label}`} onClick={() => stepBy(1)}>
        +
      </button>
    </span>
  );
}

function written(value: unknown, isWhole: boolean): string {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  return isWhole ? String(value) : String(Number(value.toPrecision(10)));
}
