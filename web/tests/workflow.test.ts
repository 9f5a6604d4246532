import { describe, expect, test } from "vitest";
import { fromPrompt, isPrompt } from "../src/graph/fromPrompt.ts";
import type { JsonObject } from "../src/graph/json.ts";
import { isWorkflow, readWorkflow } from "../src/graph/readWorkflow.ts";
import { toPrompt } from "../src/graph/toPrompt.ts";
import { writeWorkflow } from "../src/graph/writeWorkflow.ts";
import { check, pictureGraph } from "./build.ts";
import { DEFINITIONS } from "./definitions.ts";

/** As through a file. */
const saved = (file: JsonObject): JsonObject => JSON.parse(JSON.stringify(file));
const read = (file: JsonObject) => readWorkflow(saved(file), DEFINITIONS, "fresh");

const FOREIGN = {
  id: "8b1c",
  revision: 3,
  last_node_id: 40,
  last_link_id: 90,
  nodes: [
    {
      id: 7,
      type: "FancyPackNode",
      pos: { "0": 10, "1": 20 },
      size: [300, 120],
      flags: { pinned: true },
      mode: 0,
      order: 4,
      inputs: [
        { name: "image", type: "IMAGE", link: 90 },
        { name: "strength", type: "FLOAT", widget: { name: "strength" }, link: null },
      ],
      outputs: [{ name: "IMAGE", type: "IMAGE", links: null, slot_index: 0 }],
      properties: { cnr_id: "fancy", ver: "1.2" },
      widgets_values: [0.5, { nested: [1, 2] }],
      color: "#223",
    },
    {
      id: 9,
      type: "Picture",
      pos: [0, 0],
      size: [200, 90],
      outputs: [{ name: "IMAGE", type: "IMAGE", links: [90] }],
      widgets_values: ["a.png", "image", "hello"],
    },
  ],
  links: [[90, 9, 0, 7, 0, "IMAGE"]],
  groups: [{ title: "Part", bounding: [1, 2, 300, 400], color: "#3f789e", font_size: 24 }],
  config: { links_ontop: true },
  extra: {
    ds: { scale: 0.7 },
    ue_links: [1],
    reroutes: [{ id: 1, pos: [1, 1] }],
    linkExtensions: [{ id: 90, parentId: 1 }],
  },
  version: 0.4,
};

describe("round trips", () => {
  test("what is written is read as the same document", () => {
    const document = pictureGraph();
    const again = read(writeWorkflow(document, DEFINITIONS)).document;
    expect(again.links).toEqual(document.links);
    expect(toPrompt(again, DEFINITIONS)).toEqual(toPrompt(document, DEFINITIONS));
    expect(writeWorkflow(again, DEFINITIONS)).toEqual(writeWorkflow(document, DEFINITIONS));
    check(again);
  });

  test("an unknown node keeps all that its file said", () => {
    const again = saved(writeWorkflow(read(FOREIGN).document, DEFINITIONS));
    const node = (again.nodes as JsonObject[]).find(({ id }) => id === 7);
    expect(node).toMatchObject({
      type: "FancyPackNode",
      flags: { pinned: true },
      properties: { cnr_id: "fancy", ver: "1.2" },
      widgets_values: [0.5, { nested: [1, 2] }],
      color: "#223",
      inputs: [
        { name: "image", type: "IMAGE", link: 90 },
        { name: "strength", type: "FLOAT", widget: { name: "strength" }, link: null },
      ],
    });
  });

  test("keys that the editor does not know survive", () => {
    const again = saved(writeWorkflow(read(FOREIGN).document, DEFINITIONS));
    expect(again.extra).toEqual(FOREIGN.extra);
    expect(again.config).toEqual(FOREIGN.config);
    expect(again.groups).toEqual(FOREIGN.groups);
    expect([again.id, again.revision, again.last_node_id, again.last_link_id]).toEqual(["8b1c", 3, 40, 90]);
  });

  test("version 1 reads like 0.4", () => {
    const old = saved(writeWorkflow(pictureGraph(), DEFINITIONS));
    const links = (old.links as unknown as [number, number, number, number, number, string][]).map(
      ([id, origin_id, origin_slot, target_id, target_slot, type]) => ({
        id,
        origin_id,
        origin_slot,
        target_id,
        target_slot,
        type,
      }),
    );
    const { last_node_id, last_link_id, ...rest } = old;
    const state = { lastNodeId: last_node_id, lastLinkId: last_link_id };
    const document = read({ ...rest, state, links, version: 1 } as unknown as JsonObject).document;
    expect(document.links).toEqual(pictureGraph().links);
    expect(document.lastNodeId).toBe(6);
  });
});

describe("values by position", () => {
  const values = (type: string, more: JsonObject) =>
    read({ nodes: [{ id: 1, type, ...more }], links: [], version: 0.4 }).document.nodes["1"]?.values;

  test("a seed's control takes a place of its own", () => {
    expect(values("Sampler", { widgets_values: [5, "fixed", 12, 3.5, "heun"] })).toEqual({
      seed: 5,
      control_after_generate: "fixed",
      steps: 12,
      cfg: 3.5,
      sampler_name: "heun",
    });
  });

  test("what a file lacks gets its default and what it has too much is ignored", () => {
    expect(values("Sampler", { widgets_values: [5] })).toMatchObject({
      steps: 20,
      cfg: 8,
      sampler_name: "euler",
    });
    expect(values("Empty", { widgets_values: [64, 1, 2] })).toEqual({ width: 64 });
  });

  test("the upload button comes after the optional inputs", () => {
    expect(values("Picture", { widgets_values: ["a.png", "words", "image"] })).toMatchObject({
      note: "words",
    });
  });

  test("the children of a dynamic choice follow it", () => {
    expect(values("Choice", { widgets_values: ["on", 0.25, 9] })).toEqual({
      how: "on",
      "how.heat": 0.25,
      after: 9,
    });
    expect(values("Choice", { widgets_values: ["off", 9] })).toEqual({ how: "off", after: 9 });
  });

  test("values may stand in an object, or by name where no list is", () => {
    expect(values("Empty", { widgets_values: { width: 96 } })).toEqual({ width: 96 });
    expect(values("Empty", { widgets_values_named: { width: 80 } })).toEqual({ width: 80 });
  });

  test("a choice that does not exist any more stays, an old sampler name is shortened, nothing is coerced", () => {
    expect(values("Loader", { widgets_values: ["gone"] })).toEqual({ name: "gone" });
    expect(values("Sampler", { widgets_values: [1, true, "7", 2, "sample_heun"] })).toEqual({
      seed: 1,
      control_after_generate: "randomize",
      steps: "7",
      cfg: 2,
      sampler_name: "heun",
    });
  });
});

describe("links of damaged files", () => {
  const base = saved(writeWorkflow(pictureGraph(), DEFINITIONS));

  test("a link that names a missing node is dropped with a warning", () => {
    const links = [...(base.links as JsonObject[][]), [99, 50, 0, 6, 0, "IMAGE"]] as unknown as JsonObject[];
    const { document, warnings } = read({ ...base, links });
    expect(document.links["99"]).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  test("the input that names a link's id wins over the slot number in the list", () => {
    const links = (base.links as unknown as number[][]).map((link) =>
      link[3] === 5 ? link.with(4, 0) : link,
    );
    const { document } = read({ ...base, links } as unknown as JsonObject);
    expect(document.links).toEqual(pictureGraph().links);
  });

  test("of two links into one input the claimed one stays", () => {
    const links = [[77, 3, 0, 5, 0, "LATENT"], ...(base.links as unknown as number[][])];
    const { document } = read({ ...base, links } as unknown as JsonObject);
    expect(Object.values(document.links).filter((link) => link.target === "5")).toHaveLength(2);
    expect(document.links["77"]).toBeUndefined();
  });
});

describe("API prompts", () => {
  const prompt = saved(toPrompt(pictureGraph(), DEFINITIONS) as unknown as JsonObject);

  test("formats are told apart", () => {
    expect([isPrompt(prompt), isWorkflow(prompt)]).toEqual([true, false]);
    const file = writeWorkflow(pictureGraph(), DEFINITIONS);
    expect([isPrompt(file), isWorkflow(file)]).toEqual([false, true]);
  });

  test("a prompt becomes a graph that exports the same prompt, laid out from left to right", () => {
    const document = fromPrompt(prompt, DEFINITIONS, "fresh");
    expect(toPrompt(document, DEFINITIONS)).toEqual(prompt);
    check(document);
    for (const link of Object.values(document.links)) {
      expect(document.nodes[link.source]?.x).toBeLessThan(document.nodes[link.target]?.x ?? 0);
    }
  });

  test("ids of subgraph parts lose their colon", () => {
    const document = fromPrompt({ "5:12": { class_type: "Empty", inputs: { width: 8 } } }, DEFINITIONS, "x");
    expect(Object.keys(document.nodes)).toEqual(["5_12"]);
  });
});
