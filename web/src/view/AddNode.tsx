// The search that adds a node: by words, and by what fits the link that was dropped.

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { addConnectedNode, addNode, looseEndType } from "../graph/commands.ts";
import type { NodeDefinition } from "../graph/definitions.ts";
import { searchNodes } from "../graph/search.ts";
import { runAndSelect, useEditor } from "../state/editor.ts";
import { closePalette, usePalette } from "./flow.ts";
import { TITLE_HEIGHT } from "./project.ts";
import { socketColor } from "./socketColor.ts";

const WIDTH = 380;
const HEIGHT = 420;

export function AddNode() {
  const palette = usePalette((state) => state.palette);
  return palette && <Search key={`${palette.screen.x} ${palette.screen.y}`} />;
}

function Search() {
  const palette = usePalette((state) => state.palette);
  const definitions = useEditor((state) => state.definitions);
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const from = palette?.from ?? null;
  const type = from && looseEndType(useEditor.getState().document, definitions, from);
  const side = from?.kind === "input" ? "output" : "input";
  const results = useMemo(
    () => searchNodes(definitions, query, type === null ? null : { side, type }),
    [definitions, query, type, side],
  );
  if (!palette) return null;

  const add = (definition: NodeDefinition | undefined) => {
    if (!definition) return;
    const at = { x: palette.at.x, y: palette.at.y + TITLE_HEIGHT / 2 };
    runAndSelect(from ? addConnectedNode(definition.type, at, from) : addNode(definition.type, at));
    closePalette();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = results.length - 1;
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, last));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") add(results[chosen]);
    else if (event.key === "Escape") closePalette();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const left = Math.max(8, Math.min(palette.screen.x - 40, window.innerWidth - WIDTH - 12));
  const top = Math.max(8, Math.min(palette.screen.y - 24, window.innerHeight - HEIGHT - 12));
  return (
    <>
      <button
        type="button"
        className="palette-shade"
        aria-label="Close search"
        tabIndex={-1}
        onClick={closePalette}
      />
      <div
        className="palette"
        role="dialog"
        aria-label="Add a node"
        style={{ left, top, width: WIDTH, maxHeight: HEIGHT }}
      >
        <input
          // biome-ignore lint/a11y/noAutofocus: the search was asked for in order to type
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-results"
          aria-label="Search nodes"
          placeholder={
            type === null ? "Search nodes" : `Nodes that ${from?.kind === "input" ? "give" : "take"} ${type}`
          }
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <Results results={results} chosen={chosen} onChoose={add} onPoint={setChosen} query={query} />
      </div>
    </>
  );
}

interface ResultsProps {
  readonly results: readonly NodeDefinition[];
  readonly chosen: number;
  readonly query: string;
  readonly onChoose: (definition: NodeDefinition) => void;
  readonly onPoint: (index: number) => void;
}

function Results({ results, chosen, query, onChoose, onPoint }: ResultsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    // it may answer with a promise, which an effect must not
    void list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  if (results.length === 0) return <p className="hint">No node matches “{query}”.</p>;
  return (
    <ul id="palette-results" ref={list}>
      {results.map((definition, index) => (
        <li key={definition.type}>
          <button
            type="button"
            tabIndex={-1}
            className={index === chosen ? "chosen" : ""}
            onClick={() => onChoose(definition)}
            onPointerMove={() => onPoint(index)}
          >
            <span className="result-name">{definition.displayName}</span>
            <span className="result-category">{definition.category.replaceAll("/", " › ")}</span>
            <span className="result-types">
              {definition.outputs.slice(0, 4).map((output, slot) => (
                <i key={slot} title={output.type} style={{ "--socket": socketColor(output.type) }} />
              ))}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
