import { describe, expect, test } from "vitest";
import { toggleMode } from "../src/graph/commands.ts";
import type { JsonObject } from "../src/graph/json.ts";
import { readWorkflow } from "../src/graph/readWorkflow.ts";
import { toPrompt } from "../src/graph/toPrompt.ts";
import { writeWorkflow } from "../src/graph/writeWorkflow.ts";
import { after, link, pictureGraph, value, withNodes } from "./build.ts";
import { DEFINITIONS } from "./definitions.ts";

const inputs = (document: Parameters<typeof toPrompt>[0], id: string) =>
  toPrompt(document, DEFINITIONS)[id]?.inputs;

describe("values and links", () => {
  test("links are sent as id and slot, widgets as values, controls not at all", () => {
    expect(inputs(pictureGraph(), "4")).toEqual({
      model: ["1", 0],
      seed: 0,
      steps: 20,
      cfg: 8,
      sampler_name: "euler",
      positive: ["2", 0],
      latent: ["3", 0],
    });
  });

  test("each node carries its class and its title", () => {
    expect(toPrompt(pictureGraph(), DEFINITIONS)["1"]).toEqual({
      class_type: "Loader",
      inputs: { name: "glyph" },
      _meta: { title: "Load Model" },
    });
  });

  test("a link overrides the value of a widget", () => {
    const document = after(withNodes("Listing", "Encode"), value("2", "text", "own"), link("1:0", "2.text"));
    expect(inputs(document, "2")?.text).toEqual(["1", 0]);
  });

  test("a list value is wrapped, because a bare list means a link", () => {
    const document = after(withNodes("Listing"), value("1", "items", ["x", "y"]));
    expect(inputs(document, "1")).toEqual({ items: { __value__: ["x", "y"] } });
  });

  test("a dynamic choice sends its children under dotted names", () => {
    const document = after(withNodes("Choice"), value("1", "how", "on"), value("1", "how.heat", 0.9));
    expect(inputs(document, "1")).toEqual({ how: "on", "how.heat": 0.9, after: 3 });
    expect(inputs(after(document, value("1", "how", "off")), "1")).toEqual({ how: "off", after: 3 });
  });

  test("notes are not sent", () => {
    expect(toPrompt(withNodes("Note", "MarkdownNote"), DEFINITIONS)).toEqual({});
  });
});

describe("mute and bypass", () => {
  const mode = (id: string, number: number) => toggleMode(new Set([id]), number);

  test("a muted node is left out, and sockets that it fed are omitted", () => {
    const document = after(pictureGraph(), mode("2", 2));
    expect(toPrompt(document, DEFINITIONS)["2"]).toBeUndefined();
    expect(inputs(document, "4")).not.toHaveProperty("positive");
  });

  test("a widget whose muted source is gone keeps its own value", () => {
    const document = after(
      withNodes("Listing", "Encode"),
      value("2", "text", "own"),
      link("1:0", "2.text"),
      mode("1", 2),
    );
    expect(inputs(document, "2")?.text).toBe("own");
  });

  test("a bypassed node passes on the input that fits the consumer, wherever it stands", () => {
    const document = after(
      withNodes("Picture", "Pair", "Save"),
      link("1:0", "2.a"),
      link("1:1", "2.b"),
      link("2:1", "3.images"),
      mode("2", 4),
    );
    expect(inputs(document, "3")?.images).toEqual(["1", 0]);
  });

  test("to a consumer of anything a bypassed node passes on the input beside the output", () => {
    const document = after(
      withNodes("Picture", "Pair", "Show"),
      link("1:0", "2.a"),
      link("1:1", "2.b"),
      link("2:0", "3.anything"),
      mode("2", 4),
    );
    expect(inputs(document, "3")?.anything).toEqual(["1", 0]);
  });

  test("a bypassed node without a fitting input passes nothing", () => {
    const document = after(pictureGraph(), mode("5", 4));
    expect(inputs(document, "6")).toEqual({ filename_prefix: "out" });
  });
});

describe("reroutes and value boxes", () => {
  test("a link is followed through reroutes", () => {
    const document = after(
      withNodes("Picture", "Reroute", "Reroute", "Save"),
      link("1:0", "2."),
      link("2:0", "3."),
      link("3:0", "4.images"),
    );
    expect(toPrompt(document, DEFINITIONS)["2"]).toBeUndefined();
    expect(inputs(document, "4")?.images).toEqual(["1", 0]);
  });

  test("a reroute that nothing feeds sends nothing", () => {
    const document = after(withNodes("Reroute", "Save"), link("1:0", "2.images"));
    expect(inputs(document, "2")).toEqual({ filename_prefix: "out" });
  });

  test("a value box is copied, rounded to whole steps, also while muted", () => {
    const document = after(
      withNodes("PrimitiveNode", "Empty"),
      link("1:0", "2.width"),
      value("1", "value", 777),
      toggleMode(new Set(["1"]), 2),
    );
    expect(inputs(document, "2")?.width).toBe(776);
  });

  test("a value box takes over the value of the first widget that it is tied to", () => {
    const document = after(
      withNodes("PrimitiveNode", "Empty"),
      value("2", "width", 640),
      link("1:0", "2.width"),
    );
    expect(document.nodes["1"]?.values.value).toBe(640);
  });
});

const number = (name: string, id: number) => ({ id: `id-${name}`, name, type: "*", linkIds: [id] });

/** A definition with an encoder inside: clip and text come in, the conditioning goes out. */
const ENCODER = {
  id: "encoder",
  name: "My part",
  version: 1,
  nodes: [
    {
      id: 3,
      type: "Encode",
      inputs: [
        { name: "clip", type: "CLIP", link: 1 },
        { name: "text", type: "STRING", widget: { name: "text" }, link: 2 },
      ],
      outputs: [{ name: "CONDITIONING", type: "CONDITIONING", links: [3] }],
      widgets_values: ["from inside"],
    },
  ],
  links: [
    { id: 1, origin_id: -10, origin_slot: 0, target_id: 3, target_slot: 0, type: "CLIP" },
    { id: 2, origin_id: -10, origin_slot: 1, target_id: 3, target_slot: 1, type: "STRING" },
    { id: 3, origin_id: 3, origin_slot: 0, target_id: -20, target_slot: 0, type: "CONDITIONING" },
  ],
  inputs: [number("clip", 1), number("text", 2)],
  outputs: [number("CONDITIONING", 3)],
};

function instance(id: number, more: object) {
  return {
    id,
    type: "encoder",
    inputs: [
      { name: "clip", type: "CLIP", link: id },
      { name: "text", type: "STRING", widget: { name: "text" }, link: null },
    ],
    outputs: [{ name: "CONDITIONING", type: "CONDITIONING", links: [] }],
    ...more,
  };
}

describe("subgraphs", () => {
  const file = {
    nodes: [
      { id: 1, type: "Loader" },
      instance(5, { widgets_values: ["own words"] }),
      instance(6, {}),
      { id: 7, type: "Sampler", inputs: [{ name: "positive", type: "CONDITIONING", link: 7 }] },
    ],
    links: [
      [5, 1, 1, 5, 0, "CLIP"],
      [6, 1, 1, 6, 0, "CLIP"],
      [7, 5, 0, 7, 0, "CONDITIONING"],
    ],
    version: 0.4,
    definitions: { subgraphs: [ENCODER] },
  };
  const { document } = readWorkflow(file, DEFINITIONS, "x");

  test("each instance is unfolded with its own values, and links go through its ends", () => {
    const prompt = toPrompt(document, DEFINITIONS);
    expect(Object.keys(prompt).sort()).toEqual(["1", "5:3", "6:3", "7"]);
    expect(prompt["5:3"]?.inputs).toEqual({ text: "own words", clip: ["1", 1] });
    expect(prompt["6:3"]?.inputs).toEqual({ text: "from inside", clip: ["1", 1] });
    expect(prompt["7"]?.inputs.positive).toEqual(["5:3", 0]);
  });

  test("a muted instance hides all that is inside", () => {
    const prompt = toPrompt(after(document, toggleMode(new Set(["5"]), 2)), DEFINITIONS);
    expect(Object.keys(prompt).sort()).toEqual(["1", "6:3", "7"]);
    expect(prompt["7"]?.inputs).not.toHaveProperty("positive");
  });

  test("definitions and instances are kept when the workflow is written", () => {
    const written = writeWorkflow(document, DEFINITIONS);
    expect(written.definitions).toEqual(file.definitions);
    expect((written.nodes as JsonObject[])[1]).toMatchObject({
      type: "encoder",
      widgets_values: ["own words"],
    });
  });

  test("a subgraph that holds itself is refused in words", () => {
    const endless = { ...ENCODER, nodes: [...ENCODER.nodes, { id: 9, type: "encoder" }] };
    const read = readWorkflow({ ...file, definitions: { subgraphs: [endless] } }, DEFINITIONS, "x");
    expect(() => toPrompt(read.document, DEFINITIONS)).toThrow("holds itself");
  });
});

test("an unknown node is sent by its type, so that the server names it", () => {
  const file = { nodes: [{ id: 5, type: "Gone", widgets_values: [1] }], links: [], version: 0.4 };
  const { document } = readWorkflow(file, DEFINITIONS, "x");
  expect(toPrompt(document, DEFINITIONS)["5"]?.class_type).toBe("Gone");
});
