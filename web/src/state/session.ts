// The life with the server: definitions, the socket, queueing, and what running prompts tell.

import { create } from "zustand";
import type { ServerEvent } from "../api/events.ts";
import * as http from "../api/http.ts";
import type { Complaint } from "../api/refusal.ts";
import { openSocket } from "../api/socket.ts";
import { advanceControls } from "../graph/control.ts";
import { readDefinitions } from "../graph/definitions.ts";
import { settle } from "../graph/prepare.ts";
import { SubgraphError } from "../graph/subgraphs.ts";
import { toPrompt } from "../graph/toPrompt.ts";
import { writeWorkflow } from "../graph/writeWorkflow.ts";
import { freshId, run, setDefinitions, useEditor } from "./editor.ts";
import { refreshJobs, refreshJobsSoon, useJobs } from "./jobs.ts";
import { say, telling } from "./notices.ts";
import * as runs from "./runs.ts";

interface Session extends runs.Runs {
  readonly isConnected: boolean;
  readonly wasConnected: boolean;
  readonly remaining: number;
  /** refused nodes of the last attempt to queue */
  readonly complaints: Readonly<Record<string, readonly Complaint[]>>;
}

export const useSession = create<Session>(() => ({
  ...runs.NO_RUNS,
  isConnected: false,
  wasConnected: false,
  remaining: 0,
  complaints: {},
}));

const CLIENT_KEY = "treadle.client";

/** One name a browser tab, kept over a reload so that running prompts go on telling us. */
function clientId(): string {
  const known = sessionStorage.getItem(CLIENT_KEY) ?? freshId();
  sessionStorage.setItem(CLIENT_KEY, known);
  return known;
}

export function connect(): () => void {
  return openSocket(http.webSocketAddress(clientId()), {
    onEvent,
    onConnection: (isConnected) => {
      const { wasConnected } = useSession.getState();
      useSession.setState({ isConnected, wasConnected: wasConnected || isConnected });
      if (isConnected) telling(catchUp());
    },
  });
}

function onEvent(event: ServerEvent): void {
  if (event.kind === "status") {
    useSession.setState({ remaining: event.remaining });
    refreshJobsSoon();
    return;
  }
  useSession.setState((state) => runs.reduce(state, event));
  if (event.kind === "failed") say(`${event.failure.nodeType} failed: ${event.failure.message}`, "bad");
}

/** Prompts that ended while the connection was lost are in the history by now. */
async function catchUp(): Promise<void> {
  await refreshJobs();
  const { queue, history } = useJobs.getState();
  const living = new Set(queue.map((item) => item.promptId));
  for (const known of Object.values(useSession.getState().runs)) {
    if (!runs.isActive(known) || living.has(known.promptId)) continue;
    const item = history.find((candidate) => candidate.promptId === known.promptId);
    if (item) useSession.setState((state) => runs.caughtUp(state, item));
  }
}

/** Asks again what nodes and files there are. */
export async function refreshDefinitions(): Promise<void> {
  setDefinitions(readDefinitions(await http.fetchObjectInfo()));
}

/** Queues the open workflow once, then steps its seeds on. */
export async function queuePrompt(): Promise<void> {
  const { document, definitions } = useEditor.getState();
  useSession.setState({ complaints: {}, failure: null });
  try {
    const settled = settle(Math.random, new Date()).apply(document, definitions);
    const workflow = writeWorkflow(settled, definitions);
    const { promptId, refusal } = await http.postPrompt(toPrompt(settled, definitions), workflow, clientId());
    useSession.setState((state) => ({ ...runs.queued(state, promptId), complaints: refusal?.nodes ?? {} }));
    if (refusal) say(refusal.message, "bad");
    run(advanceControls(Math.random));
  } catch (error) {
    refused(error);
  }
}

function refused(error: unknown): void {
  if (error instanceof http.PromptRefused) {
    const { nodes } = error.refusal;
    useSession.setState({ complaints: nodes });
    // complaints about nodes are shown on them and in the list of problems
    if (Object.keys(nodes).length > 0) return;
  } else if (!(error instanceof http.ServerError || error instanceof SubgraphError)) {
    throw error;
  }
  say(error.message, "bad");
}

/** Stops the prompt that the canvas shows, or else the first one that runs. */
export async function interrupt(): Promise<void> {
  const { runs: known, shown } = useSession.getState();
  const current = shown !== null && known[shown]?.state === "running" ? shown : null;
  const first = useJobs.getState().queue.find((item) => item.isRunning)?.promptId ?? null;
  const promptId = current ?? first;
  if (promptId !== null) await http.interrupt(promptId);
}

/** Another workflow is open: what its nodes would show belongs to the one before. */
export function forgetRuns(): void {
  useSession.setState({ outputs: {}, texts: {}, previews: {}, failure: null, complaints: {}, shown: null });
}

/** Shows a past prompt's pictures in the nodes that made them. */
export function showOutputs(outputs: runs.Runs["outputs"]): void {
  useSession.setState({ outputs });
}
