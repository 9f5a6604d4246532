// The document as React Flow's nodes and edges: a projection, never the truth. Unchanged records keep their
// objects, so that only what changed is drawn again.

import type { Edge, Node } from "@xyflow/react";
import type { Definitions } from "../graph/definitions.ts";
import type { GraphNode, Group, WorkflowDocument } from "../graph/records.ts";
import { outputType } from "../graph/sockets.ts";

export const TITLE_HEIGHT = 30;

export type BoxNode = Node<{ record: GraphNode }, "box">;
export type FrameNode = Node<{ record: Group }, "frame">;
export type FlowNode = BoxNode | FrameNode;
export type FlowLink = Edge<{ type: string }, "link">;

export function inputHandle(name: string): string {
  return `in:${name}`;
}

export function outputHandle(slot: number): string {
  return `out:${slot}`;
}

export function inputOf(handle: string): string {
  return handle.slice("in:".length);
}

export function slotOf(handle: string): number {
  return Number(handle.slice("out:".length));
}

export function projectNodes(
  document: WorkflowDocument,
  selected: ReadonlySet<string>,
  before: readonly FlowNode[],
): FlowNode[] {
  const known = new Map(before.map((node) => [node.id, node]));
  const frames = Object.values(document.groups).map((group) =>
    projectFrame(group, known.get(`frame ${group.id}`)),
  );
  const boxes = Object.values(document.nodes).map((node) =>
    projectBox(node, selected.has(node.id), known.get(node.id)),
  );
  return [...frames, ...boxes];
}

function projectBox(record: GraphNode, isSelected: boolean, before: FlowNode | undefined): FlowNode {
  if (before?.type === "box" && before.data.record === record && before.selected === isSelected)
    return before;
  return {
    id: record.id,
    type: "box",
    // files place the body; the title stands above it
    position: { x: record.x, y: record.y - TITLE_HEIGHT },
    data: { record },
    selected: isSelected,
    style: { width: record.width },
    ...(before?.measured ? { measured: before.measured } : {}),
  };
}

function projectFrame(record: Group, before: FlowNode | undefined): FlowNode {
  if (before?.type === "frame" && before.data.record === record) return before;
  return {
    id: `frame ${record.id}`,
    type: "frame",
    position: { x: record.x, y: record.y },
    data: { record },
    style: { width: record.width, height: record.height },
    zIndex: -1,
    selectable: false,
    draggable: false,
    focusable: false,
    ...(before?.measured ? { measured: before.measured } : {}),
  };
}

export function projectLinks(
  document: WorkflowDocument,
  definitions: Definitions,
  selected: ReadonlySet<string>,
): FlowLink[] {
  return Object.values(document.links).map((link) => ({
    id: link.id,
    type: "link",
    source: link.source,
    sourceHandle: outputHandle(link.sourceSlot),
    target: link.target,
    targetHandle: inputHandle(link.targetInput),
    selected: selected.has(link.id),
    data: { type: outputType(document, definitions, link.source, link.sourceSlot) },
  }));
}
