// From key presses to actions. A field that is being typed in keeps its keys, but for those that say otherwise.

import { ACTIONS, type Action, onCopy, onPaste } from "./actions.ts";

const FIELDS = "input, textarea, select, [contenteditable], dialog[open]";

function isInField(event: Event): boolean {
  return event.target instanceof Element && event.target.closest(FIELDS) !== null;
}

/** The name of a press as the actions write it. */
export function nameOf(
  event: Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">,
): string {
  const isLetter = /^Key[A-Z]$/.test(event.code);
  // the letter's place counts, so that the keys work on every layout and with Alt held
  const key = isLetter ? event.code.slice(3) : event.key === " " ? "Space" : event.key;
  const isSign = !isLetter && key.length === 1;
  const parts = [
    event.ctrlKey || event.metaKey ? "Ctrl" : "",
    event.altKey ? "Alt" : "",
    event.shiftKey && !isSign ? "Shift" : "",
    key,
  ];
  return parts.filter(Boolean).join("+");
}

const BY_KEY = new Map<string, Action>(
  Object.values(ACTIONS).flatMap((action: Action) => action.keys.map((key) => [key, action] as const)),
);

/** A focused button is pressed with it, a focused node selected. */
function hasOwnSpace(event: Event): boolean {
  return event.target instanceof Element && event.target.closest("button, .react-flow__node") !== null;
}

function onKeyDown(event: KeyboardEvent): void {
  const action = BY_KEY.get(nameOf(event));
  if (!action || (isInField(event) && !action.worksInFields)) return;
  if (nameOf(event) === "Space" && hasOwnSpace(event)) return;
  event.preventDefault();
  action.perform();
}

export function listenToKeys(): () => void {
  const copy = (event: ClipboardEvent) => {
    if (!isInField(event)) onCopy(event);
  };
  const paste = (event: ClipboardEvent) => {
    if (!isInField(event)) onPaste(event);
  };
  window.addEventListener("keydown", onKeyDown);
  window.addEventListener("copy", copy);
  window.addEventListener("cut", copy);
  window.addEventListener("paste", paste);
  return () => {
    window.removeEventListener("keydown", onKeyDown);
    window.removeEventListener("copy", copy);
    window.removeEventListener("cut", copy);
    window.removeEventListener("paste", paste);
  };
}

const IS_MAC = navigator.platform.startsWith("Mac");

/** Keys as people of this system read them. */
export function written(keys: string): string {
  return IS_MAC
    ? keys.replace("Ctrl+", "⌘").replace("Shift+", "⇧").replace("Alt+", "⌥").replace("Enter", "↩")
    : keys.replaceAll("+", " + ");
}
