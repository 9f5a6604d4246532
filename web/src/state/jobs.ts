// The server's queue and history as lists, fetched again when the server says that they changed.

import { create } from "zustand";
import type { HistoryItem } from "../api/history.ts";
import { fetchHistory, fetchQueue, type QueueItem } from "../api/http.ts";

const HISTORY_LENGTH = 60;
const SETTLE_MS = 120;

interface Jobs {
  readonly queue: readonly QueueItem[];
  readonly history: readonly HistoryItem[];
  readonly isLoaded: boolean;
}

export const useJobs = create<Jobs>(() => ({ queue: [], history: [], isLoaded: false }));

let timer = 0;

/** Many changes in one moment cost one fetch. */
export function refreshJobsSoon(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => {
    refreshJobs().catch(() => undefined); // the connection's own notice tells of a lost server
  }, SETTLE_MS);
}

export async function refreshJobs(): Promise<void> {
  const [queue, history] = await Promise.all([fetchQueue(), fetchHistory(HISTORY_LENGTH)]);
  useJobs.setState({ queue, history, isLoaded: true });
}
