// Past prompts, newest first: their pictures and texts, and a way back to the workflow that made them.

import type { HistoryItem } from "../api/history.ts";
import { clearHistory, deleteHistory, viewAddress } from "../api/http.ts";
import type { StoredFile } from "../api/output.ts";
import { openJson } from "../state/files.ts";
import { refreshJobs, useJobs } from "../state/jobs.ts";
import { say, telling } from "../state/notices.ts";
import { showOutputs } from "../state/session.ts";
import { showPictures } from "../state/viewer.ts";
import { Icon } from "../view/Icon.tsx";
import { ago, describe, lasting } from "./describe.ts";

export function HistoryPanel() {
  const history = useJobs((state) => state.history);
  const isLoaded = useJobs((state) => state.isLoaded);
  if (history.length === 0) {
    return (
      <div className="empty">
        <Icon name="clock" />
        <p>{isLoaded ? "No prompts so far." : "Reading…"}</p>
        <p className="hint">What you run is listed here with its pictures, also after a restart.</p>
      </div>
    );
  }
  return (
    <>
      <ol className="past">
        {history.map((item) => (
          <HistoryRow key={item.promptId} item={item} />
        ))}
      </ol>
      <footer className="side-foot">
        <button type="button" className="small" onClick={() => telling(clearHistory().then(refreshJobs))}>
          Clear history
        </button>
      </footer>
    </>
  );
}

function HistoryRow({ item }: { readonly item: HistoryItem }) {
  const files = Object.values(item.outputs).flatMap((output) => output.images);
  const texts = Object.values(item.outputs).flatMap((output) => output.texts);
  const open = () => {
    if (openJson(item.workflow ?? item.prompt, "From history")) showOutputs(item.outputs);
    else say("This prompt kept no workflow.", "bad");
  };
  return (
    <li className={`past-item ${item.state}`}>
      <div className="past-shows">
        {files.length > 0 && <Thumbnails files={files} />}
        <div className="past-words">
          {texts.length > 0 && <p className="past-text">{texts.join(" ")}</p>}
          {item.error && <p className="past-error">{item.error}</p>}
          {item.state === "interrupted" && <p className="hint">Interrupted</p>}
          {texts.length === 0 && <p className="past-title">{describe(item.workflow)}</p>}
          <p className="hint past-when">{when(item)}</p>
          <div className="past-foot">
            <button type="button" className="small" onClick={open}>
              Open workflow
            </button>
            <button
              type="button"
              className="bare"
              aria-label="Remove from the history"
              onClick={() => telling(deleteHistory([item.promptId]).then(refreshJobs))}
            >
              <Icon name="trash" />
            </button>
          </div>
        </div>
      </div>
    </li>
  );
}

function when(item: HistoryItem): string {
  const parts = [
    item.finishedAt === null ? "" : ago(item.finishedAt, Date.now()),
    item.durationMs === null ? "" : lasting(item.durationMs),
  ];
  return parts.filter(Boolean).join(" · ");
}

function Thumbnails({ files }: { readonly files: readonly StoredFile[] }) {
  return (
    <div className={files.length > 1 ? "thumbnails several" : "thumbnails"}>
      {files.slice(0, 4).map((file, index) => (
        <button
          key={`${file.subfolder}/${file.filename}`}
          type="button"
          className="picture"
          onClick={() => showPictures(files, index)}
        >
          <img src={viewAddress(file, true)} alt={file.filename} loading="lazy" draggable={false} />
        </button>
      ))}
    </div>
  );
}
