// A titled area behind nodes.

import type { NodeProps } from "@xyflow/react";
import { memo } from "react";
import type { FrameNode } from "./project.ts";

export const FrameView = memo(function FrameView({ data }: NodeProps<FrameNode>) {
  const { title, color } = data.record;
  return (
    <div className="frame" style={{ "--frame": color ?? "var(--muted)" }}>
      <span className="frame-title">{title}</span>
    </div>
  );
});
