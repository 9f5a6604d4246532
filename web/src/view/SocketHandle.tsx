// The dot that links are drawn from and to. While a link is drawn, dots that it cannot enter step back.

import { Handle, Position } from "@xyflow/react";
import { canConnect } from "../graph/connections.ts";
import { useEditor } from "../state/editor.ts";
import { useDrawing } from "./flow.ts";
import { inputHandle, outputHandle } from "./project.ts";
import { socketColor } from "./socketColor.ts";

interface InputProps {
  readonly node: string;
  readonly name: string;
  readonly type: string;
  readonly isLinked: boolean;
  readonly isWidget?: boolean;
  readonly isOptional?: boolean;
}

export function InputHandle({
  node,
  name,
  type,
  isLinked,
  isWidget = false,
  isOptional = false,
}: InputProps) {
  const from = useDrawing((state) => state.from);
  const isSelf = from?.kind === "input" && from.node === node && from.input === name;
  const fits =
    from?.kind === "output" &&
    allows({ source: from.node, sourceSlot: from.slot, target: node, targetInput: name });
  const state = from === null || isSelf ? "" : fits ? "fits" : "misfits";
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
  const from = useDrawing((state) => state.from);
  const isSelf = from?.kind === "output" && from.node === node && from.slot === slot;
  const fits =
    from?.kind === "input" &&
    allows({ source: node, sourceSlot: slot, target: from.node, targetInput: from.input });
  const state = from === null || isSelf ? "" : fits ? "fits" : "misfits";
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
