// The bar above the canvas: what is open, what can be done with it, and Run.

import { useState } from "react";
import { type Example, fetchExample, fetchExamples } from "../api/http.ts";
import { redo, rename, undo, useEditor } from "../state/editor.ts";
import { openJson } from "../state/files.ts";
import { telling } from "../state/notices.ts";
import { useSession } from "../state/session.ts";
import { change, useSettings, useTheme } from "../state/settings.ts";
import { Icon, type IconName } from "../view/Icon.tsx";
import { ACTIONS, type ActionName } from "./actions.ts";
import { written } from "./keys.ts";
import { Menu, MenuItem } from "./Menu.tsx";

export function TopBar() {
  return (
    <header className="topbar">
      <div className="brand">
        <img src="./icon.svg" alt="" width="24" height="24" />
        <strong>Treadle</strong>
      </div>
      <nav aria-label="Workflow">
        <Menu label="File">
          <ActionItems names={["newWorkflow", "open", "save", "exportPrompt"]} />
        </Menu>
        <Menu label="Edit">
          <ActionItems
            names={[
              "undo",
              "redo",
              "selectAll",
              "duplicate",
              "remove",
              "bypass",
              "mute",
              "collapse",
              "arrange",
            ]}
          />
        </Menu>
        <Menu label="View">
          <ActionItems
            names={[
              "fit",
              "fullSize",
              "zoomIn",
              "zoomOut",
              "minimap",
              "queue",
              "history",
              "refresh",
              "settings",
              "shortcuts",
            ]}
          />
        </Menu>
        <Examples />
      </nav>
      <WorkflowName />
      <div className="tools">
        <Undo />
        <PanelButtons />
        <ThemeButton />
        <Interrupt />
        <Run />
      </div>
    </header>
  );
}

function ActionItems({ names }: { readonly names: readonly ActionName[] }) {
  return names.map((name) => {
    const { label, keys, perform } = ACTIONS[name];
    return <MenuItem key={name} label={label} keys={written(keys[0] ?? "")} onChoose={perform} />;
  });
}

function Examples() {
  const [examples, setExamples] = useState<readonly Example[]>([]);
  const load = async (example: Example) => {
    openJson(await fetchExample(example.name), example.title);
  };
  return (
    <Menu label="Examples" onOpen={() => telling(fetchExamples().then(setExamples))}>
      {examples.map((example) => (
        <MenuItem key={example.name} label={example.title} onChoose={() => telling(load(example))} />
      ))}
      {examples.length === 0 && <p className="hint">No examples here.</p>}
    </Menu>
  );
}

function WorkflowName() {
  const name = useEditor((state) => state.name);
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <input
      className="workflow-name"
      aria-label="Name of the workflow"
      value={draft ?? name}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={() => {
        if (draft !== null) rename(draft);
        setDraft(null);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") event.currentTarget.blur();
      }}
    />
  );
}

interface ToolProps {
  readonly icon: IconName;
  readonly label: string;
  readonly keys?: string;
  readonly isDisabled?: boolean;
  readonly isPressed?: boolean;
  readonly count?: number;
  readonly onPress: () => void;
}

function Tool({ icon, label, keys, isDisabled, isPressed, count, onPress }: ToolProps) {
  const hint = keys ? `${label} (${written(keys)})` : label;
  return (
    <button
      type="button"
      className="tool"
      aria-label={label}
      title={hint}
      disabled={isDisabled}
      aria-pressed={isPressed}
      onClick={onPress}
    >
      <Icon name={icon} />
      {count !== undefined && count > 0 && <span className="count">{count}</span>}
    </button>
  );
}

function Undo() {
  const past = useEditor((state) => state.history.past.at(-1)?.label);
  const future = useEditor((state) => state.history.future[0]?.label);
  return (
    <div className="tool-group">
      <Tool
        icon="undo"
        label={past ? `Undo: ${past}` : "Undo"}
        keys="Ctrl+Z"
        isDisabled={!past}
        onPress={undo}
      />
      <Tool
        icon="redo"
        label={future ? `Redo: ${future}` : "Redo"}
        keys="Ctrl+Shift+Z"
        isDisabled={!future}
        onPress={redo}
      />
    </div>
  );
}

function PanelButtons() {
  const panel = useSettings((state) => state.panel);
  const remaining = useSession((state) => state.remaining);
  const { queue, history } = ACTIONS;
  return (
    <div className="tool-group">
      <Tool
        icon="queue"
        label="Queue"
        keys="Q"
        isPressed={panel === "queue"}
        count={remaining}
        onPress={queue.perform}
      />
      <Tool icon="clock" label="History" keys="H" isPressed={panel === "history"} onPress={history.perform} />
    </div>
  );
}

function ThemeButton() {
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <Tool
      icon={theme === "dark" ? "sun" : "moon"}
      label={`Switch to ${other}`}
      onPress={() => change({ theme: other })}
    />
  );
}

function Interrupt() {
  const isIdle = useSession((state) => state.remaining === 0);
  return (
    <button
      type="button"
      className="interrupt"
      disabled={isIdle}
      title={`Interrupt (${written("Ctrl+Alt+Enter")})`}
      onClick={ACTIONS.interrupt.perform}
    >
      <Icon name="stop" /> Interrupt
    </button>
  );
}

function Run() {
  const isReady = useEditor((state) => state.hasDefinitions);
  return (
    <button
      type="button"
      className="run"
      disabled={!isReady}
      title={`Run (${written("Ctrl+Enter")})`}
      onClick={ACTIONS.run.perform}
    >
      <Icon name="play" /> Run
    </button>
  );
}
