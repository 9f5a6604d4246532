// A reroute: a dot in the colour of what passes through it.

import type { GraphNode } from "../graph/records.ts";
import { InputHandle, OutputHandle } from "./SocketHandle.tsx";
import { socketColor } from "./socketColor.ts";
import { useLinked, useOutputType } from "./useNode.ts";

export function RerouteView({ record }: { readonly record: GraphNode }) {
  const linked = useLinked(record.id);
  const type = useOutputType(record.id);
  return (
    <div
      className="reroute"
      role="img"
      style={{ "--socket": socketColor(type) }}
      aria-label={`Reroute of ${type}`}
    >
      <InputHandle node={record.id} name="" type={type} isLinked={linked.has("in:")} />
      <OutputHandle node={record.id} slot={0} label="" type={type} isLinked={linked.has("out:0")} />
    </div>
  );
}
