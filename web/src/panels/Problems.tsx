// What went wrong, as a list: each line leads to its node.

import { selectNodes, useEditor } from "../state/editor.ts";
import { useSession } from "../state/session.ts";
import { fitView } from "../view/flow.ts";
import { Icon } from "../view/Icon.tsx";

interface Problem {
  readonly node: string;
  readonly message: string;
}

export function Problems() {
  const complaints = useSession((state) => state.complaints);
  const failure = useSession((state) => state.failure);
  const refused = Object.entries(complaints).flatMap(([node, list]) =>
    list.map(({ input, message }) => ({ node, message: input ? `${input}: ${message}` : message })),
  );
  const failed = failure ? [{ node: failure.node, message: failure.message }] : [];
  const problems: Problem[] = [...failed, ...refused];
  if (problems.length === 0) return null;
  return (
    <section className="problems" aria-label="Problems">
      <h2>
        <Icon name="alert" /> {problems.length === 1 ? "One problem" : `${problems.length} problems`}
        <button type="button" className="bare" aria-label="Dismiss" onClick={dismiss}>
          <Icon name="close" />
        </button>
      </h2>
      <ul>
        {problems.map((problem) => (
          <ProblemLine key={`${problem.node} ${problem.message}`} problem={problem} />
        ))}
      </ul>
      {failure && failure.traceback.length > 0 && (
        <details>
          <summary>Traceback</summary>
          <pre>{failure.traceback.join("")}</pre>
        </details>
      )}
    </section>
  );
}

function dismiss(): void {
  useSession.setState({ complaints: {}, failure: null });
}

function ProblemLine({ problem }: { readonly problem: Problem }) {
  const name = useEditor(({ document, definitions }) => {
    const node = document.nodes[problem.node];
    return node ? (node.title ?? definitions[node.type]?.displayName ?? node.type) : null;
  });
  const show = () => {
    if (name === null) return;
    selectNodes(new Set([problem.node]));
    fitView([problem.node]);
  };
  return (
    <li>
      <button type="button" onClick={show}>
        <strong>{name ?? `Node ${problem.node}`}</strong> {problem.message}
      </button>
    </li>
  );
}
