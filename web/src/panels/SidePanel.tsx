// The panel on the right: the queue or the history.

import { change, useSettings } from "../state/settings.ts";
import { Icon } from "../view/Icon.tsx";
import { HistoryPanel } from "./HistoryPanel.tsx";
import { QueuePanel } from "./QueuePanel.tsx";

export function SidePanel() {
  const panel = useSettings((state) => state.panel);
  if (panel === "none") return null;
  return (
    <aside className="side" aria-label={panel === "queue" ? "Queue" : "History"}>
      <div className="side-tabs" role="tablist">
        <Tab name="queue" label="Queue" isOpen={panel === "queue"} />
        <Tab name="history" label="History" isOpen={panel === "history"} />
        <button
          type="button"
          className="bare"
          aria-label="Close the panel"
          onClick={() => change({ panel: "none" })}
        >
          <Icon name="close" />
        </button>
      </div>
      {panel === "queue" ? <QueuePanel /> : <HistoryPanel />}
    </aside>
  );
}

interface TabProps {
  readonly name: "queue" | "history";
  readonly label: string;
  readonly isOpen: boolean;
}

function Tab({ name, label, isOpen }: TabProps) {
  return (
    <button type="button" role="tab" aria-selected={isOpen} onClick={() => change({ panel: name })}>
      {label}
    </button>
  );
}
