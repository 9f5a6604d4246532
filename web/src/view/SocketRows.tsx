// Rows of sockets: what comes in on the left, what goes out on the right.

import type { Complaint } from "../api/refusal.ts";
import type { InputSocket, OutputSocket } from "../graph/sockets.ts";
import { wordsOf } from "./labels.ts";
import { InputHandle, OutputHandle } from "./SocketHandle.tsx";
import { type NodeSockets, useOutputType } from "./useNode.ts";

interface Props {
  readonly id: string;
  readonly sockets: NodeSockets;
  readonly linked: ReadonlySet<string>;
}

export function SocketRows({
  id,
  sockets,
  linked,
  complaints,
}: Props & { readonly complaints: readonly Complaint[] }) {
  const inputs = sockets.inputs.filter((input) => !input.isWidget);
  if (inputs.length === 0 && sockets.outputs.length === 0) return null;
  return (
    <div className="sockets">
      <ul className="inputs">
        {inputs.map((input) => (
          <InputRow
            key={input.name}
            id={id}
            input={input}
            isLinked={linked.has(`in:${input.name}`)}
            complaint={complaints.find((complaint) => complaint.input === input.name) ?? null}
          />
        ))}
      </ul>
      <ul className="outputs">
        {sockets.outputs.map((output) => (
          <OutputRow key={output.slot} id={id} output={output} isLinked={linked.has(`out:${output.slot}`)} />
        ))}
      </ul>
    </div>
  );
}

interface InputRowProps {
  readonly id: string;
  readonly input: InputSocket;
  readonly isLinked: boolean;
  readonly complaint: Complaint | null;
}

function InputRow({ id, input, isLinked, complaint }: InputRowProps) {
  return (
    <li
      className={complaint ? "socket-row refused" : "socket-row"}
      title={complaint?.message ?? input.tooltip ?? ""}
    >
      <InputHandle
        node={id}
        name={input.name}
        type={input.type}
        isLinked={isLinked}
        isOptional={!input.isRequired}
      />
      <span className={input.isRequired ? "" : "optional"}>{wordsOf(input.label)}</span>
      {complaint && <em role="alert">{complaint.message}</em>}
    </li>
  );
}

function OutputRow({
  id,
  output,
  isLinked,
}: {
  readonly id: string;
  readonly output: OutputSocket;
  readonly isLinked: boolean;
}) {
  const through = useOutputType(id);
  const type = output.type === "*" ? through : output.type;
  return (
    <li className="socket-row" title={output.tooltip ?? ""}>
      <span>{output.label}</span>
      <OutputHandle node={id} slot={output.slot} label={output.label} type={type} isLinked={isLinked} />
    </li>
  );
}

/** A folded node keeps its links: all dots lie in the middle of its sides. */
export function CollapsedSockets({ id, sockets, linked }: Props) {
  return (
    <div className="collapsed-sockets">
      {sockets.inputs.map((input) => (
        <InputHandle
          key={input.name}
          node={id}
          name={input.name}
          type={input.type}
          isLinked={linked.has(`in:${input.name}`)}
        />
      ))}
      {sockets.outputs.map((output) => (
        <OutputHandle
          key={output.slot}
          node={id}
          slot={output.slot}
          label={output.label}
          type={output.type}
          isLinked={linked.has(`out:${output.slot}`)}
        />
      ))}
    </div>
  );
}
