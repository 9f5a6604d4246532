// The drawn canvas as others may ask about it: where the pointer is, what lies in the middle, show all.

import type { ReactFlowInstance } from "@xyflow/react";
import { create } from "zustand";
import type { LooseEnd, Point } from "../graph/commands.ts";
import type { FlowLink, FlowNode } from "./project.ts";

interface Palette {
  /** where on the page the search opens, and where on the canvas the node goes */
  readonly screen: Point;
  readonly at: Point;
  readonly from: LooseEnd | null;
}

export const usePalette = create<{ readonly palette: Palette | null }>(() => ({ palette: null }));

/** The socket that a link is being drawn from; every dot on the canvas asks, so it changes rarely. */
export const useDrawing = create<{ readonly from: LooseEnd | null }>(() => ({ from: null }));

type Flow = ReactFlowInstance<FlowNode, FlowLink>;
let flow: Flow | null = null;
let pointer: Point | null = null;

export function setFlow(instance: Flow): void {
  flow = instance;
}

export function rememberPointer(screen: Point | null): void {
  pointer = screen;
}

function middleOfScreen(): Point {
  const box = document.querySelector(".canvas")?.getBoundingClientRect();
  return box ? { x: box.left + box.width / 2, y: box.top + box.height / 2 } : { x: 0, y: 0 };
}

/** The place on the canvas under the pointer, or in the middle when the pointer is elsewhere. */
export function placeForNew(): Point {
  return flow?.screenToFlowPosition(pointer ?? middleOfScreen()) ?? { x: 0, y: 0 };
}

export function openPalette(screen: Point = pointer ?? middleOfScreen(), from: LooseEnd | null = null): void {
  const at = flow?.screenToFlowPosition(screen) ?? { x: 0, y: 0 };
  usePalette.setState({ palette: { screen, at, from } });
}

export function closePalette(): void {
  usePalette.setState({ palette: null });
}

export function fitView(ids: Iterable<string> = []): void {
  const nodes = [...ids].map((id) => ({ id }));
  void flow?.fitView({ padding: 0.12, maxZoom: 1.1, duration: 250, ...(nodes.length > 0 ? { nodes } : {}) });
}

export function zoomBy(factor: number): void {
  void flow?.zoomTo(flow.getZoom() * factor, { duration: 120 });
}

export function zoomToFull(): void {
  void flow?.zoomTo(1, { duration: 150 });
}
