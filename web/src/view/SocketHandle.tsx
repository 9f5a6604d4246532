// The dot that links are drawn from and to. While a link is drawn, dots that it cannot enter step back.

import { Handle, Position, useConnection } from "@xyflow/react";
import { canConnect } from "../graph/connections.ts";
import { useEditor } from "../state/editor.ts";
import { inputHandle, inputOf, outputHandle, slotOf } from "./project.ts";
import { socketColor } from "./socketColor.ts";

interface InputProps {
  readonly node: string;
  readonly name: string;
  readonly type: string;
  readonly isLinked: boolean;
  readonly isWidget?: boolean;
  readonly isOptional?: boolean;
}

interface Dragged {
  readonly kind: "source" | "target";
  readonly node: string;
  readonly handle: string;
}

function useDragged(): Dragged | null {
  return useConnection((connection) =>
    connection.inProgress
      ? {
          kind: connection.fromHandle.type,
          node: connection.fromNode.id,
          handle: connection.fromHandle.id ?? "",
        }
      : null,
  );
}

export function InputHandle({
  node,
  name,
  type,
  isLinked,
  isWidget = false,
  isOptional = false,
}: InputProps) {
  const dragged = useDragged();
  const fits =
    dragged !== null &&
    dragged.kind === "source" &&
    allows({ source: dragged.node, sourceSlot: slotOf(dragged.handle), target: node, targetInput: name });
  const isSelf = dragged?.kind === "target" && dragged.node === node && dragged.handle === inputHandle(name);
  const state = dragged === null || isSelf ? "" : fits ? "fits" : "misfits";
  const shape = [isLinked ? "linked" : "", isWidget ? "of-widget" : "", isOptional ? "optional" : ""];
  return (
    <Handle
      id={inputHandle(name)}
      type="target"
      position={Position.Left}
      className={`socket ${shape.join(" ")} ${state}`}
      style={{ "--socket": socketColor(type) }}
      title={`${name || "input"} · ${type}`}
    />
  );
}

interface OutputProps {
  readonly node: string;
  readonly slot: number;
  readonly label: string;
  readonly type: string;
  readonly isLinked: boolean;
}

export function OutputHandle({ node, slot, label, type, isLinked }: OutputProps) {
  const dragged = useDragged();
  const fits =
    dragged !== null &&
    dragged.kind === "target" &&
    allows({ source: node, sourceSlot: slot, target: dragged.node, targetInput: inputOf(dragged.handle) });
  const isSelf = dragged?.kind === "source" && dragged.node === node && dragged.handle === outputHandle(slot);
  const state = dragged === null || isSelf ? "" : fits ? "fits" : "misfits";
  return (
    <Handle
      id={outputHandle(slot)}
      type="source"
      position={Position.Right}
      className={`socket ${isLinked ? "linked" : ""} ${state}`}
      style={{ "--socket": socketColor(type) }}
      title={`${label || "output"} · ${type}`}
    />
  );
}

function allows(ends: Parameters<typeof canConnect>[2]): boolean {
  const { document, definitions } = useEditor.getState();
  return canConnect(document, definitions, ends).isAllowed;
}
