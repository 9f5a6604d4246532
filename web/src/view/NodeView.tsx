// A node as a box: title, progress, sockets, widgets, and what it shows while and after it runs.

import { type NodeProps, NodeResizeControl, useUpdateNodeInternals } from "@xyflow/react";
import { memo, useEffect, useRef } from "react";
import { isNote, PRIMITIVE, REROUTE } from "../graph/builtin.ts";
import { MIN_WIDTH, resizeNode } from "../graph/commands.ts";
import { NodeMode } from "../graph/records.ts";
import { run, useEditor } from "../state/editor.ts";
import { NodeDisplay } from "./NodeDisplay.tsx";
import { NodeTitle } from "./NodeTitle.tsx";
import { type BoxNode, TITLE_HEIGHT } from "./project.ts";
import { RerouteView } from "./RerouteView.tsx";
import { CollapsedSockets, SocketRows } from "./SocketRows.tsx";
import {
  type NodeSockets,
  useComplaints,
  useFailure,
  useLinked,
  useNodeRun,
  useSockets,
  useSubgraph,
} from "./useNode.ts";
import { PrimitiveRows, WidgetRows } from "./WidgetRows.tsx";

export const NodeView = memo(function NodeView(props: NodeProps<BoxNode>) {
  const { record } = props.data;
  return record.type === REROUTE ? <RerouteView record={record} /> : <Box {...props} />;
});

function Box({ data, selected }: NodeProps<BoxNode>) {
  const { record } = data;
  const { id } = record;
  const definition = useEditor((state) => state.definitions[record.type]);
  const isLoading = useEditor((state) => !state.hasDefinitions);
  const subgraph = useSubgraph(record.type);
  const sockets = useSockets(record);
  const linked = useLinked(id);
  const progress = useNodeRun(id);
  const complaints = useComplaints(id);
  const failure = useFailure(id);
  useHandlesAgain(id, `${record.isCollapsed} ${record.rest.showAdvanced}`, sockets);

  const isUnknown = !definition && subgraph === null && !isLoading;
  const classes = [
    "node",
    selected ? "selected" : "",
    record.mode === NodeMode.mute ? "muted" : "",
    record.mode === NodeMode.bypass ? "bypassed" : "",
    isUnknown ? "unknown" : "",
    isNote(record.type) ? "note" : "",
    record.height > 0 ? "sized" : "",
    progress ? `is-${progress.state}` : "",
    failure || complaints.length > 0 ? "has-error" : "",
  ];
  const name = record.title ?? definition?.displayName ?? subgraph ?? record.type;
  const general = complaints.filter(
    (complaint) => !sockets.inputs.some((input) => input.name === complaint.input),
  );
  return (
    <article
      className={classes.filter(Boolean).join(" ")}
      style={record.isCollapsed ? undefined : { minHeight: record.height + TITLE_HEIGHT }}
      aria-label={name}
    >
      <NodeTitle record={record} definition={definition} name={name} run={progress} />
      {record.isCollapsed ? (
        <CollapsedSockets id={id} sockets={sockets} linked={linked} />
      ) : (
        <div className="node-body">
          <SocketRows id={id} sockets={sockets} linked={linked} complaints={complaints} />
          {isUnknown && <p className="node-unknown">This node is not installed. Its data is kept.</p>}
          {subgraph !== null && <p className="hint">A subgraph. It runs as it was saved.</p>}
          {record.type === PRIMITIVE && <PrimitiveRows record={record} />}
          {definition && (
            <WidgetRows record={record} definition={definition} linked={linked} complaints={complaints} />
          )}
          <NodeDisplay id={id} isOutput={definition?.isOutput === true} />
        </div>
      )}
      {failure && <Trouble text={failure} />}
      {general.map((complaint) => (
        <Trouble key={complaint.message} text={complaint.message} />
      ))}
      {selected && !record.isCollapsed && (
        <NodeResizeControl
          className="resize"
          position="bottom-right"
          minWidth={MIN_WIDTH}
          minHeight={TITLE_HEIGHT}
          onResizeEnd={(_, { x, y, width, height }) =>
            run(resizeNode(id, { x, y: y + TITLE_HEIGHT, width, height: height - TITLE_HEIGHT }))
          }
        />
      )}
    </article>
  );
}

function Trouble({ text }: { readonly text: string }) {
  return (
    <p className="node-trouble nodrag" role="alert">
      {text}
    </p>
  );
}

/** React Flow measures handles when a node appears; when they move or change later it has to be told. */
function useHandlesAgain(id: string, form: string, sockets: NodeSockets): void {
  const update = useUpdateNodeInternals();
  const names = [...sockets.inputs.map(({ name }) => name), ...sockets.outputs.map(({ slot }) => slot)].join(
    "\n",
  );
  const shape = `${form} ${names}`;
  const measured = useRef(shape);
  useEffect(() => {
    if (measured.current === shape) return;
    measured.current = shape;
    update(id);
  }, [id, shape, update]);
}
