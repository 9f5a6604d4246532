// Short messages at the foot of the page. They go by themselves; nothing is modal.

import { create } from "zustand";

export interface Notice {
  readonly id: number;
  readonly tone: "plain" | "good" | "bad";
  readonly text: string;
}

const SHOWN_MS = 4500;
const MOST = 3;

export const useNotices = create<{ readonly notices: readonly Notice[] }>(() => ({ notices: [] }));

let last = 0;

export function say(text: string, tone: Notice["tone"] = "plain"): void {
  const notice = { id: ++last, tone, text };
  useNotices.setState(({ notices }) => ({
    notices: [...notices.filter((other) => other.text !== text), notice].slice(-MOST),
  }));
  window.setTimeout(() => dismiss(notice.id), SHOWN_MS);
}

export function dismiss(id: number): void {
  useNotices.setState(({ notices }) => ({ notices: notices.filter((notice) => notice.id !== id) }));
}

/** For promises that nobody waits for: their failure is told. */
export function telling(work: Promise<unknown>): void {
  work.catch((error: unknown) => say(error instanceof Error ? error.message : String(error), "bad"));
}
