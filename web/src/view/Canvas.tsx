// The canvas: React Flow over the document. Gestures end in commands; only a drag in progress lives here.

import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  type Edge,
  type EdgeChange,
  type FinalConnectionState,
  type NodeChange,
  ReactFlow,
  SelectionMode,
} from "@xyflow/react";
import { type MouseEvent, useEffect, useMemo, useState } from "react";
import {
  connect,
  type LooseEnd,
  looseEndType,
  moveNodes,
  reconnect,
  removeLinks,
} from "../graph/commands.ts";
import { canConnect, type Endpoints, firstInputFor, firstOutputFor } from "../graph/connections.ts";
import { type Link, linkInto } from "../graph/records.ts";
import { run, selectOnly, useEditor } from "../state/editor.ts";
import { say } from "../state/notices.ts";
import { useSettings, useTheme } from "../state/settings.ts";
import { FrameView } from "./FrameView.tsx";
import { fitView, openPalette, rememberPointer, setFlow, useDrawing } from "./flow.ts";
import { LinkView } from "./LinkView.tsx";
import { NodeView } from "./NodeView.tsx";
import { Overview } from "./Overview.tsx";
import {
  type FlowLink,
  type FlowNode,
  inputOf,
  projectLinks,
  projectNodes,
  slotOf,
  TITLE_HEIGHT,
} from "./project.ts";

const NODE_TYPES = { box: NodeView, frame: FrameView };
const LINK_TYPES = { link: LinkView };

export function Canvas() {
  const [nodes, setNodes] = useFlowNodes();
  const links = useFlowLinks();
  const theme = useTheme();
  const hasMinimap = useSettings((state) => state.hasMinimap);
  const snapsToGrid = useSettings((state) => state.snapsToGrid);
  useShowAllWhenOpened();

  const onNodesChange = (changes: NodeChange<FlowNode>[]) => {
    setNodes((current) => applyNodeChanges(changes.filter(isDrawn), current));
    selectFrom(changes, "nodes");
    commitMoves(changes);
  };
  return (
    <div
      className="canvas"
      onPointerMove={(event) => rememberPointer({ x: event.clientX, y: event.clientY })}
      onPointerLeave={() => rememberPointer(null)}
    >
      <ReactFlow<FlowNode, FlowLink>
        nodes={nodes}
        edges={links}
        nodeTypes={NODE_TYPES}
        edgeTypes={LINK_TYPES}
        colorMode={theme}
        onInit={setFlow}
        onNodesChange={onNodesChange}
        onEdgesChange={(changes) => selectFrom(changes, "links")}
        onConnect={(connection) => run(connect(endsOf(connection)))}
        onConnectStart={(_, { nodeId, handleType, handleId }) => {
          if (nodeId && handleType)
            useDrawing.setState({ from: looseEnd(nodeId, handleType, handleId ?? "") });
        }}
        onConnectEnd={finishConnection}
        isValidConnection={isValid}
        onReconnect={(link, connection) => run(reconnect(link.id, endsOf(connection)))}
        onReconnectEnd={dropLink}
        onDoubleClick={searchOnEmptySpace}
        deleteKeyCode={null}
        multiSelectionKeyCode={["Shift", "Meta", "Control"]}
        selectionMode={SelectionMode.Partial}
        panOnDrag={[0, 1]}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements
        connectionRadius={26}
        reconnectRadius={12}
        minZoom={0.1}
        maxZoom={2.5}
        snapToGrid={snapsToGrid}
        snapGrid={[20, 20]}
        elevateEdgesOnSelect
        disableKeyboardA11y={false}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1.6} color="var(--dots)" />
        {hasMinimap && <Overview />}
      </ReactFlow>
    </div>
  );
}

function useFlowNodes() {
  const document = useEditor((state) => state.document);
  const selected = useEditor((state) => state.selectedNodes);
  const [nodes, setNodes] = useState<FlowNode[]>(() => projectNodes(document, selected, []));
  useEffect(() => setNodes((before) => projectNodes(document, selected, before)), [document, selected]);
  return [nodes, setNodes] as const;
}

function useFlowLinks(): FlowLink[] {
  const document = useEditor((state) => state.document);
  const definitions = useEditor((state) => state.definitions);
  const selected = useEditor((state) => state.selectedLinks);
  return useMemo(() => projectLinks(document, definitions, selected), [document, definitions, selected]);
}

function useShowAllWhenOpened(): void {
  const opened = useEditor((state) => state.opened);
  useEffect(() => {
    // asked while there is no node, React Flow would move the view under the first one that is added
    if (Object.keys(useEditor.getState().document.nodes).length === 0) return;
    const timer = window.setTimeout(() => fitView(), 60);
    return () => window.clearTimeout(timer);
  }, [opened]);
}

/** Selection and removal go through the store; positions and sizes are drawn at once. */
function isDrawn(change: NodeChange<FlowNode>): boolean {
  return change.type === "position" || change.type === "dimensions";
}

function selectFrom(
  changes: ReadonlyArray<NodeChange<FlowNode> | EdgeChange<Edge>>,
  table: "nodes" | "links",
): void {
  const picks = changes.filter((change) => change.type === "select");
  if (picks.length === 0) return;
  const { selectedNodes, selectedLinks } = useEditor.getState();
  const next = new Set(table === "nodes" ? selectedNodes : selectedLinks);
  for (const pick of picks) {
    if (pick.selected) next.add(pick.id);
    else next.delete(pick.id);
  }
  if (table === "nodes") selectOnly(next, selectedLinks);
  else selectOnly(selectedNodes, next);
}

/** A drag is one command when it ends; so is a step with the arrow keys. */
function commitMoves(changes: readonly NodeChange<FlowNode>[]): void {
  const { nodes } = useEditor.getState().document;
  const moved = changes.flatMap((change) => {
    if (change.type !== "position" || change.dragging === true || !change.position) return [];
    const { x, y } = change.position;
    const record = nodes[change.id];
    const isSame = record?.x === Math.round(x) && record.y === Math.round(y + TITLE_HEIGHT);
    return isSame ? [] : [[change.id, { x, y: y + TITLE_HEIGHT }] as const];
  });
  if (moved.length > 0) run(moveNodes(new Map(moved)));
}

function endsOf(connection: Connection | FlowLink): Endpoints {
  return {
    source: connection.source,
    sourceSlot: slotOf(connection.sourceHandle ?? ""),
    target: connection.target,
    targetInput: inputOf(connection.targetHandle ?? ""),
  };
}

function isValid(connection: Connection | FlowLink): boolean {
  const { document, definitions } = useEditor.getState();
  return canConnect(document, definitions, endsOf(connection)).isAllowed;
}

/** A link that was let go: refused with the reason, tied to the node below, or a search for what fits. */
function finishConnection(event: globalThis.MouseEvent | TouchEvent, connection: FinalConnectionState): void {
  useDrawing.setState({ from: null });
  const { fromHandle, fromNode, toHandle, toNode, isValid: isDone } = connection;
  if (isDone || !fromHandle || !fromNode) return;
  const from = looseEnd(fromNode.id, fromHandle.type, fromHandle.id ?? "");
  const lifted =
    from.kind === "input" ? linkInto(useEditor.getState().document, from.node, from.input) : null;
  if (lifted && (!toNode || toHandle?.type === "target")) {
    moveEnd(lifted, toHandle && { node: toHandle.nodeId, input: inputOf(toHandle.id ?? "") });
  } else if (toHandle) {
    const { document, definitions } = useEditor.getState();
    if (toHandle.type === fromHandle.type) {
      say(`An ${from.kind} cannot be connected to an ${from.kind}.`, "bad");
      return;
    }
    const other = looseEnd(toHandle.nodeId, toHandle.type, toHandle.id ?? "");
    const ends = from.kind === "output" ? joined(from, other) : joined(other, from);
    const verdict = ends && canConnect(document, definitions, ends);
    if (verdict && !verdict.isAllowed) say(verdict.reason, "bad");
  } else if (toNode) {
    connectToNode(from, toNode.id);
  } else {
    const point = "changedTouches" in event ? event.changedTouches[0] : event;
    if (point) openPalette({ x: point.clientX, y: point.clientY }, from);
  }
}

/** Pulling at a linked input takes the end of its link: to another input, or off. */
function moveEnd(link: Link, to: { readonly node: string; readonly input: string } | null): void {
  if (!to) {
    run(removeLinks(new Set([link.id])));
    return;
  }
  const { document, definitions } = useEditor.getState();
  const ends = { source: link.source, sourceSlot: link.sourceSlot, target: to.node, targetInput: to.input };
  const verdict = canConnect(document, definitions, ends);
  if (verdict.isAllowed) run(reconnect(link.id, ends));
  else say(verdict.reason, "bad");
}

function looseEnd(node: string, type: "source" | "target", handle: string): LooseEnd {
  return type === "source"
    ? { kind: "output", node, slot: slotOf(handle) }
    : { kind: "input", node, input: inputOf(handle) };
}

function joined(output: LooseEnd, input: LooseEnd): Endpoints | null {
  if (output.kind !== "output" || input.kind !== "input") return null;
  return { source: output.node, sourceSlot: output.slot, target: input.node, targetInput: input.input };
}

function connectToNode(from: LooseEnd, id: string): void {
  const { document, definitions } = useEditor.getState();
  const node = document.nodes[id];
  if (!node || from.node === id) return;
  const type = looseEndType(document, definitions, from);
  const input = from.kind === "output" ? firstInputFor(document, definitions, node, type) : null;
  const slot = from.kind === "input" ? firstOutputFor(definitions, node, type) : null;
  const ends =
    from.kind === "output"
      ? input !== null && joined(from, { kind: "input", node: id, input })
      : slot !== null && joined({ kind: "output", node: id, slot }, from);
  const verdict = ends ? canConnect(document, definitions, ends) : null;
  if (ends && verdict?.isAllowed) run(connect(ends));
  else
    say(verdict && !verdict.isAllowed ? verdict.reason : `This node has nothing that fits ${type}.`, "bad");
}

/** A link that was pulled off its socket and let go over nothing is gone. */
function dropLink(_event: unknown, link: FlowLink, _side: unknown, connection: FinalConnectionState): void {
  if (!connection.isValid && !connection.toHandle) run(removeLinks(new Set([link.id])));
}

function searchOnEmptySpace(event: MouseEvent): void {
  const isPane = event.target instanceof Element && event.target.classList.contains("react-flow__pane");
  if (isPane) openPalette({ x: event.clientX, y: event.clientY });
}
