// A node's widgets with their labels, their sockets, and what the server found wrong with them.

import type { Complaint } from "../api/refusal.ts";
import { setValue, toggleAdvanced } from "../graph/commands.ts";
import type { NodeDefinition } from "../graph/definitions.ts";
import { asString } from "../graph/json.ts";
import { primitiveTarget } from "../graph/primitive.ts";
import type { GraphNode } from "../graph/records.ts";
import { type Widget, widgetsOf } from "../graph/widgets.ts";
import { run, useEditor } from "../state/editor.ts";
import { wordsOf } from "./labels.ts";
import { InputHandle } from "./SocketHandle.tsx";
import { componentFor, isWide } from "./widgets/registry.ts";

interface Props {
  readonly record: GraphNode;
  readonly definition: NodeDefinition;
  readonly linked: ReadonlySet<string>;
  readonly complaints: readonly Complaint[];
}

export function WidgetRows({ record, definition, linked, complaints }: Props) {
  const widgets = widgetsOf(definition, record.values).filter(
    (widget) => widget.input.options.hidden !== true,
  );
  if (widgets.length === 0) return null;
  const complaintOf = (widget: Widget) => complaints.find(({ input }) => input === widget.name) ?? null;
  const isLinked = (widget: Widget) => linked.has(`in:${widget.input.name}`);
  const advanced = widgets.filter(({ input }) => input.options.advanced === true);
  const showsAll = record.rest.showAdvanced === true;
  const shown = widgets.filter(
    (widget) => showsAll || !advanced.includes(widget) || isLinked(widget) || complaintOf(widget) !== null,
  );
  return (
    <div className="widgets">
      {shown.map((widget) => (
        <WidgetRow
          key={widget.name}
          record={record}
          widget={widget}
          isLinked={isLinked(widget)}
          complaint={complaintOf(widget)}
        />
      ))}
      {advanced.length > 0 && (
        <button
          type="button"
          className="more nodrag"
          aria-expanded={showsAll}
          onClick={() => run(toggleAdvanced(record.id))}
        >
          {showsAll ? "Fewer options" : `More options (${advanced.length})`}
        </button>
      )}
    </div>
  );
}

interface RowProps {
  readonly record: GraphNode;
  readonly widget: Widget;
  readonly isLinked: boolean;
  readonly complaint: Complaint | null;
}

function WidgetRow({ record, widget, isLinked, complaint }: RowProps) {
  const Component = componentFor(widget);
  if (!Component) return null;
  const { id } = record;
  const isOwn = widget.name === widget.input.name;
  const label = isOwn ? wordsOf(asString(widget.input.options.display_name) || widget.name) : "after run";
  const fieldId = `widget-${id}-${widget.name}`;
  const classes = [
    "widget",
    isWide(widget) && !isLinked ? "wide" : "",
    isOwn ? "" : "beside",
    complaint ? "refused" : "",
  ];
  return (
    <div className={classes.filter(Boolean).join(" ")} title={asString(widget.input.options.tooltip)}>
      {isOwn && widget.input.options.socketless !== true && (
        <InputHandle
          node={id}
          name={widget.name}
          type={widget.input.type}
          isLinked={isLinked}
          isWidget
          isOptional
        />
      )}
      <label htmlFor={fieldId}>{label}</label>
      {isLinked ? (
        <span className="from-link">{isOwn ? "from link" : ""}</span>
      ) : (
        <div className="field nodrag nopan">
          <Component
            id={fieldId}
            widget={widget}
            value={record.values[widget.name]}
            label={label}
            onChange={(value) => run(setValue(id, widget.name, value))}
          />
        </div>
      )}
      {complaint && <em role="alert">{complaint.message}</em>}
    </div>
  );
}

/** A value box shows the widget of what it is connected to. */
export function PrimitiveRows({ record }: { readonly record: GraphNode }) {
  const target = useEditor(({ document, definitions }) => primitiveTarget(document, definitions, record.id));
  if (!target) return <p className="hint">Connect this to an input that has a widget.</p>;
  const asOwn = { ...target, name: "value" };
  const definition: NodeDefinition = { ...EMPTY, inputs: [asOwn] };
  return <WidgetRows record={record} definition={definition} linked={NOTHING} complaints={[]} />;
}

const NOTHING: ReadonlySet<string> = new Set();
const EMPTY: NodeDefinition = {
  type: "",
  displayName: "",
  category: "",
  description: "",
  inputs: [],
  outputs: [],
  isOutput: false,
  isDeprecated: false,
  isExperimental: false,
  aliases: [],
  pythonModule: "",
};
