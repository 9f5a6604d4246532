import { describe, expect, test } from "vitest";
import { advanceControls, nextValue } from "../src/graph/control.ts";
import type { InputDefinition } from "../src/graph/definitions.ts";
import { chooseVariants, fillTokens, settle } from "../src/graph/prepare.ts";
import { searchNodes } from "../src/graph/search.ts";
import { after, link, value, withNodes } from "./build.ts";
import { DEFINITIONS } from "./definitions.ts";

function input(
  options: InputDefinition["options"],
  choices: InputDefinition["choices"] = null,
): InputDefinition {
  return { name: "seed", type: choices ? "COMBO" : "INT", isRequired: true, options, choices };
}

describe("what comes after a value", () => {
  const seed = input({ min: 0, max: 2 ** 64 });

  test.each([
    ["fixed", 7, 7],
    ["increment", 7, 8],
    ["decrement", 7, 6],
    ["decrement", 0, 0],
  ])("%s of %i is %i", (mode, before, next) => {
    expect(nextValue(seed, before, mode, "", () => 0.5)).toBe(next);
  });

  test("random seeds stay whole and safe although the range is not", () => {
    const drawn = nextValue(seed, 0, "randomize", "", () => 0.999999999);
    expect(Number.isSafeInteger(drawn)).toBe(true);
    expect(drawn).toBeLessThanOrEqual(2 ** 50);
  });

  test("random values keep to the steps from the smallest on", () => {
    const drawn = nextValue(input({ min: 16, max: 64, step: 8 }), 16, "randomize", "", () => 0.6) as number;
    expect((drawn - 16) % 8).toBe(0);
  });

  test("choices are stepped through, within a filter", () => {
    const combo = input({}, ["a1", "b1", "a2"]);
    expect(nextValue(combo, "a1", "increment", "", Math.random)).toBe("b1");
    expect(nextValue(combo, "a1", "increment", "a", Math.random)).toBe("a2");
    expect(nextValue(combo, "a2", "increment-wrap", "/^a/", Math.random)).toBe("a1");
    expect(nextValue(combo, "a2", "increment", "/(/", Math.random)).toBe("a2");
  });

  test("seeds go on after queueing, a fixed or linked one does not", () => {
    const document = after(
      withNodes("Sampler", "Sampler", "Sampler", "PrimitiveNode"),
      value("2", "control_after_generate", "fixed"),
      link("4:0", "3.seed"),
    );
    const stepped = after(
      document,
      value("1", "control_after_generate", "increment"),
      advanceControls(() => 0.5),
    );
    expect(stepped.nodes["1"]?.values.seed).toBe(1);
    expect(stepped.nodes["2"]).toBe(document.nodes["2"]);
    expect(stepped.nodes["3"]).toBe(document.nodes["3"]);
  });
});

describe("texts that are settled when a prompt is queued", () => {
  test("one variant is chosen, comments go, escaped signs stay", () => {
    expect(chooseVariants("a {red|{blue|green}} fish // later", () => 0.9)).toBe("a green fish ");
    expect(chooseVariants("a {red|blue} /* or */ \\{x\\}", () => 0)).toBe("a red  {x}");
    expect(chooseVariants("{open", () => 0)).toBe("open");
  });

  test("only inputs that ask for it are chosen from", () => {
    const document = after(
      withNodes("Encode", "Save"),
      value("1", "text", "{b}"),
      value("2", "filename_prefix", "{b}"),
    );
    const settled = after(
      document,
      settle(() => 0, new Date()),
    );
    expect([settled.nodes["1"]?.values.text, settled.nodes["2"]?.values.filename_prefix]).toEqual([
      "b",
      "{b}",
    ]);
  });

  test("file names take dates and values of widgets, and leave the rest to the server", () => {
    const document = after(withNodes("Empty"), value("1", "width", 96));
    const now = new Date(2026, 1, 3, 4, 5, 6);
    expect(fillTokens("%date:yyyy-MM-dd%/%Empty.width%_%width%", document, now)).toBe(
      "2026-02-03/96_%width%",
    );
  });
});

describe("searching for a node", () => {
  const found = (query: string, ...filter: Parameters<typeof searchNodes>[2][]) =>
    searchNodes(DEFINITIONS, query, filter[0] ?? null).map(({ type }) => type);

  test("the start of a name comes before the middle of one", () => {
    expect(found("sam")[0]).toBe("Sampler");
    expect(found("load mod")[0]).toBe("Loader");
  });

  test("aliases are found, nonsense is not", () => {
    expect(found("prompt")).toContain("Encode");
    expect(found("qqqq")).toEqual([]);
  });

  test("a filter by socket leaves what fits, the exact ones first", () => {
    const takers = found("", { side: "input", type: "VAE" });
    expect(takers[0]).toBe("Decode");
    expect(takers).toContain("Show");
    expect(takers).not.toContain("Empty");
  });
});
