// What runs and what waits, in order, each with a way to stop it.

import { clearQueue, deleteQueued, interrupt, type QueueItem } from "../api/http.ts";
import { useJobs } from "../state/jobs.ts";
import { telling } from "../state/notices.ts";
import { isActive, type Run } from "../state/runs.ts";
import { useSession } from "../state/session.ts";
import { Icon } from "../view/Icon.tsx";
import { describe } from "./describe.ts";

export function QueuePanel() {
  const queue = useJobs((state) => state.queue);
  const waiting = queue.filter((item) => !item.isRunning);
  if (queue.length === 0) {
    return (
      <div className="empty">
        <Icon name="queue" />
        <p>Nothing is queued.</p>
        <p className="hint">
          Press Run as often as you like: prompts share the machine and each finishes on its own.
        </p>
      </div>
    );
  }
  return (
    <>
      <ol className="jobs">
        {queue.map((item, index) => (
          <QueueRow key={item.promptId} item={item} place={index - (queue.length - waiting.length) + 1} />
        ))}
      </ol>
      {waiting.length > 1 && (
        <footer className="side-foot">
          <button type="button" className="small" onClick={() => telling(clearQueue())}>
            Remove all waiting
          </button>
        </footer>
      )}
    </>
  );
}

function QueueRow({ item, place }: { readonly item: QueueItem; readonly place: number }) {
  const run = useSession((state) => state.runs[item.promptId]);
  const stop = () => telling(item.isRunning ? interrupt(item.promptId) : deleteQueued([item.promptId]));
  return (
    <li className={item.isRunning ? "job running" : "job"}>
      <div className="job-text">
        <strong>{describe(item.workflow)}</strong>
        <span className="hint">{item.isRunning ? progressOf(run) : `waiting, place ${place}`}</span>
        {item.isRunning && <div className="bar" style={{ "--share": shareOf(run) }} />}
      </div>
      <button
        type="button"
        className="bare"
        aria-label={item.isRunning ? "Interrupt this prompt" : "Remove from the queue"}
        onClick={stop}
      >
        <Icon name={item.isRunning ? "stop" : "close"} />
      </button>
    </li>
  );
}

function progressOf(run: Run | undefined): string {
  if (!run || !isActive(run)) return "running";
  const current = Object.values(run.nodes).find((node) => node.state === "running" && node.max > 1);
  return current ? `running, step ${current.value} of ${current.max}` : "running";
}

function shareOf(run: Run | undefined): number {
  const current = Object.values(run?.nodes ?? {}).find((node) => node.state === "running" && node.max > 1);
  return current ? current.value / current.max : 0;
}
