// The title bar: name (double-click to change), state, and the fold.

import { type KeyboardEvent, useState } from "react";
import { setTitle, toggleCollapsed } from "../graph/commands.ts";
import type { NodeDefinition } from "../graph/definitions.ts";
import { type GraphNode, NodeMode } from "../graph/records.ts";
import { run as perform } from "../state/editor.ts";
import type { NodeRun } from "../state/runs.ts";
import { Icon } from "./Icon.tsx";

interface Props {
  readonly record: GraphNode;
  readonly definition: NodeDefinition | undefined;
  readonly name: string;
  readonly run: NodeRun | undefined;
}

export function NodeTitle({ record, definition, name, run }: Props) {
  const [isEditing, setIsEditing] = useState(false);
  const finish = (title: string) => {
    setIsEditing(false);
    if (title.trim() !== name) perform(setTitle(record.id, title === definition?.displayName ? "" : title));
  };
  return (
    <header className="node-title" title={definition?.description || record.type}>
      <button
        type="button"
        className={record.isCollapsed ? "fold folded nodrag" : "fold nodrag"}
        aria-label={record.isCollapsed ? "Unfold" : "Fold"}
        onClick={() => perform(toggleCollapsed(new Set([record.id])))}
      >
        <Icon name="chevron" />
      </button>
      {isEditing ? (
        <TitleField name={name} onFinish={finish} />
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: F2 does the same for the keyboard
        <span className="node-name" onDoubleClick={() => setIsEditing(true)}>
          {name}
        </span>
      )}
      <State record={record} run={run} />
      {run && <Progress run={run} />}
    </header>
  );
}

function TitleField({
  name,
  onFinish,
}: {
  readonly name: string;
  readonly onFinish: (title: string) => void;
}) {
  const [text, setText] = useState(name);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") onFinish(text);
    if (event.key === "Escape") onFinish(name);
  };
  return (
    <input
      className="title-field nodrag"
      // biome-ignore lint/a11y/noAutofocus: the field opens because its text was double-clicked
      autoFocus
      value={text}
      aria-label="Title"
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => onFinish(text)}
      onKeyDown={onKeyDown}
    />
  );
}

function State({ record, run }: { readonly record: GraphNode; readonly run: NodeRun | undefined }) {
  if (record.mode === NodeMode.mute) return <span className="badge">muted</span>;
  if (record.mode === NodeMode.bypass) return <span className="badge">bypassed</span>;
  if (run?.state === "running" && run.max > 1) {
    return (
      <span className="badge running">
        {run.value}/{run.max}
      </span>
    );
  }
  if (run?.state === "cached") return <span className="badge">reused</span>;
  if (run?.state === "finished") {
    return (
      <span className="done">
        <Icon name="check" />
      </span>
    );
  }
  return null;
}

function Progress({ run }: { readonly run: NodeRun }) {
  if (run.state !== "running") return null;
  const share = run.max > 0 ? Math.min(1, run.value / run.max) : 0;
  const isUnmeasured = run.max <= 1 || run.value === 0;
  return (
    <div
      className={isUnmeasured ? "progress unmeasured" : "progress"}
      role="progressbar"
      aria-valuemin={0}
      aria-valuemax={run.max}
      aria-valuenow={run.value}
      aria-label="Progress"
      style={{ "--share": share }}
    />
  );
}
