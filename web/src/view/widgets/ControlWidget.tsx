// What happens to the value above once a prompt has been queued.

import { CONTROL_MODES } from "../../graph/control.ts";
import type { WidgetProps } from "./props.ts";

const WORDS: Readonly<Record<string, string>> = {
  fixed: "keep",
  increment: "count up",
  decrement: "count down",
  randomize: "randomize",
  "increment-wrap": "count up, wrap",
};

export function ControlWidget({ id, value, onChange }: WidgetProps) {
  const mode = typeof value === "string" ? value : "fixed";
  const modes = CONTROL_MODES.some((known) => known === mode) ? CONTROL_MODES : [...CONTROL_MODES, mode];
  return (
    <select id={id} value={mode} onChange={(event) => onChange(event.target.value)}>
      {modes.map((choice) => (
        <option key={choice} value={choice}>
          {WORDS[choice] ?? choice}
        </option>
      ))}
    </select>
  );
}
