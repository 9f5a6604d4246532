import { describe, expect, test } from "vitest";
import { toggleMode } from "../src/graph/commands.ts";
import { readWorkflow } from "../src/graph/readWorkflow.ts";
import { ConversionError, toPrompt } from "../src/graph/toPrompt.ts";
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

describe("what cannot be run", () => {
  const subgraph = {
    nodes: [{ id: 1, type: "the-definition", pos: [0, 0] }],
    links: [],
    version: 0.4,
    definitions: { subgraphs: [{ id: "the-definition", name: "My part" }] },
  };

  test("a subgraph is refused by its name", () => {
    const { document } = readWorkflow(subgraph, DEFINITIONS, "x");
    expect(() => toPrompt(document, DEFINITIONS)).toThrow(ConversionError);
    expect(() => toPrompt(document, DEFINITIONS)).toThrow("My part");
    expect(writeWorkflow(document, DEFINITIONS).definitions).toEqual(subgraph.definitions);
  });

  test("an unknown node is sent by its type, so that the server names it", () => {
    const file = { nodes: [{ id: 5, type: "Gone", widgets_values: [1] }], links: [], version: 0.4 };
    const { document } = readWorkflow(file, DEFINITIONS, "x");
    expect(toPrompt(document, DEFINITIONS)["5"]?.class_type).toBe("Gone");
  });
});
