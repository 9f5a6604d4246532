// A link as a curve in the colour of what it carries.

import { BaseEdge, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo } from "react";
import type { FlowLink } from "./project.ts";
import { socketColor } from "./socketColor.ts";

export const LinkView = memo(function LinkView(props: EdgeProps<FlowLink>) {
  const [path] = getBezierPath(props);
  return (
    <BaseEdge
      id={props.id}
      path={path}
      interactionWidth={18}
      className={props.selected ? "link selected" : "link"}
      style={{ stroke: socketColor(props.data?.type ?? "*") }}
    />
  );
});
