// A small map of the whole graph, there only while some of it is out of sight.

import { MiniMap, type ReactFlowState, useStore } from "@xyflow/react";
import type { FlowNode } from "./project.ts";

const SLACK = 4;

export function Overview() {
  const isNeeded = useStore(hasHiddenNodes);
  if (!isNeeded) return null;
  return (
    <MiniMap<FlowNode>
      pannable
      zoomable
      ariaLabel="Overview"
      nodeBorderRadius={12}
      nodeColor={(node) => (node.type === "frame" ? "transparent" : "var(--line-strong)")}
      style={{ width: 168, height: 112 }}
    />
  );
}

function hasHiddenNodes({ nodeLookup, transform, width, height }: ReactFlowState): boolean {
  const [left, top, zoom] = transform;
  for (const { internals, measured } of nodeLookup.values()) {
    const x = internals.positionAbsolute.x * zoom + left;
    const y = internals.positionAbsolute.y * zoom + top;
    const right = x + (measured.width ?? 0) * zoom;
    const bottom = y + (measured.height ?? 0) * zoom;
    if (x < -SLACK || y < -SLACK || right > width + SLACK || bottom > height + SLACK) return true;
  }
  return false;
}
