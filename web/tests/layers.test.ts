import { expect, test } from "vitest";

// what each folder may import beside itself: the graph stands alone, the page knows all
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  graph: [],
  api: ["graph"],
  state: ["graph", "api"],
  view: ["graph", "api", "state"],
  panels: ["graph", "api", "state", "view"],
};

const sources = import.meta.glob<string>("../src/*/**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** `../src/view/widgets/A.tsx` importing `../../graph/b.ts` gives the folder `graph`. */
function importedFolders(path: string, source: string): string[] {
  const base = new URL(path.replace("../src", "http://x"));
  const specifiers = [...source.matchAll(/from "(\.[^"]*)"/g)].map((match) => match[1] ?? "");
  return specifiers.map((specifier) => new URL(specifier, base).pathname.split("/")[1] ?? "");
}

test("imports go one way: graph, api, state, view, panels", () => {
  const wrong = Object.entries(sources).flatMap(([path, source]) => {
    const folder = path.split("/")[2] ?? "";
    const allowed = [folder, ...(MAY_IMPORT[folder] ?? [])];
    return importedFolders(path, source)
      .filter((imported) => !allowed.includes(imported))
      .map((imported) => `${path} imports ${imported}`);
  });
  expect(Object.keys(sources).length).toBeGreaterThan(40);
  expect(wrong).toEqual([]);
});

test("the graph knows no browser and no React", () => {
  const graph = Object.entries(sources).filter(([path]) => path.startsWith("../src/graph/"));
  const found = graph.filter(([, source]) =>
    /\b(window|localStorage|navigator)\b\.|from "react|document\.(create|query)/.test(source),
  );
  expect(found.map(([path]) => path)).toEqual([]);
});
