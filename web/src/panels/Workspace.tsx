// The page: bar, canvas, panel, and files that are dropped on it.

import { type DragEvent, useEffect, useState } from "react";
import { useEditor } from "../state/editor.ts";
import { openFile } from "../state/files.ts";
import { telling } from "../state/notices.ts";
import { AddNode } from "../view/AddNode.tsx";
import { Canvas } from "../view/Canvas.tsx";
import { Icon, type IconName } from "../view/Icon.tsx";
import { ACTIONS, type ActionName } from "./actions.ts";
import { listenToKeys, written } from "./keys.ts";
import { ConnectionLost, Notices, Viewer } from "./Overlays.tsx";
import { Problems } from "./Problems.tsx";
import { Dialogs } from "./Settings.tsx";
import { SidePanel } from "./SidePanel.tsx";
import { TopBar } from "./TopBar.tsx";

export function Workspace() {
  useEffect(listenToKeys, []);
  const [isOver, setIsOver] = useState(false);
  const onDrop = (event: DragEvent) => {
    setIsOver(false);
    const file = event.dataTransfer.files[0];
    if (!file || event.defaultPrevented) return;
    event.preventDefault();
    telling(openFile(file));
  };
  const onDragOver = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setIsOver(true);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way to what the menu does
    <div
      className={isOver ? "workspace drop-target" : "workspace"}
      onDragOver={onDragOver}
      onDragLeave={() => setIsOver(false)}
      onDrop={onDrop}
    >
      <TopBar />
      <main>
        <div className="stage">
          <Canvas />
          <EmptyCanvas />
          <CanvasTools />
          <Problems />
          <ConnectionLost />
        </div>
        <SidePanel />
      </main>
      <AddNode />
      <Dialogs />
      <Viewer />
      <Notices />
    </div>
  );
}

function EmptyCanvas() {
  const isEmpty = useEditor((state) => Object.keys(state.document.nodes).length === 0);
  const isReady = useEditor((state) => state.hasDefinitions);
  if (!isEmpty) return null;
  return (
    <div className="empty-canvas">
      <h1>{isReady ? "An empty canvas" : "Starting…"}</h1>
      <p>
        {isReady
          ? "Double-click to add a node, drop a workflow or a picture here, or open an example."
          : "The server is loading its nodes."}
      </p>
    </div>
  );
}

const TOOLS: ReadonlyArray<readonly [ActionName, IconName]> = [
  ["add", "plus"],
  ["fit", "fit"],
  ["shortcuts", "keyboard"],
];

function CanvasTools() {
  return (
    <div className="canvas-tools">
      {TOOLS.map(([name, icon]) => {
        const { label, keys, perform } = ACTIONS[name];
        return (
          <button
            key={name}
            type="button"
            className="tool"
            aria-label={label}
            title={`${label} (${written(keys[0] ?? "")})`}
            onClick={perform}
          >
            <Icon name={icon} />
          </button>
        );
      })}
    </div>
  );
}
