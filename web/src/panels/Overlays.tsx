// What floats above everything: notices, the picture in full size, and the state of the connection.

import { type KeyboardEvent, useEffect, useRef } from "react";
import { viewAddress } from "../api/http.ts";
import { dismiss, useNotices } from "../state/notices.ts";
import { useSession } from "../state/session.ts";
import { closeViewer, showPictures, useViewer } from "../state/viewer.ts";
import { Icon } from "../view/Icon.tsx";

export function Notices() {
  const notices = useNotices((state) => state.notices);
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <button
          key={notice.id}
          type="button"
          className={`notice ${notice.tone}`}
          onClick={() => dismiss(notice.id)}
        >
          {notice.text}
        </button>
      ))}
    </div>
  );
}

export function ConnectionLost() {
  const isLost = useSession((state) => state.wasConnected && !state.isConnected);
  return isLost ? <p className="connection-lost">Connection lost. Trying again…</p> : null;
}

export function Viewer() {
  const { files, index } = useViewer();
  const dialog = useRef<HTMLDialogElement>(null);
  const file = files[index];
  useEffect(() => {
    if (file && !dialog.current?.open) dialog.current?.showModal();
  }, [file]);
  if (!file) return null;
  const turn = (by: number) => showPictures(files, (index + by + files.length) % files.length);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowRight") turn(1);
    if (event.key === "ArrowLeft") turn(-1);
  };
  return (
    <dialog
      ref={dialog}
      className="viewer"
      aria-label={file.filename}
      onClose={closeViewer}
      onKeyDown={onKeyDown}
    >
      <button type="button" className="viewer-picture" aria-label="Close the picture" onClick={closeViewer}>
        <img src={viewAddress(file)} alt={file.filename} />
      </button>
      <footer>
        <span>{file.filename}</span>
        {files.length > 1 && (
          <span>
            {index + 1} of {files.length}
          </span>
        )}
        <a href={viewAddress(file)} download={file.filename}>
          <Icon name="save" /> Download
        </a>
      </footer>
    </dialog>
  );
}
