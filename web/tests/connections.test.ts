import { describe, expect, test } from "vitest";
import { canConnect, firstInputFor } from "../src/graph/connections.ts";
import { readDefinitions } from "../src/graph/definitions.ts";
import type { GraphNode } from "../src/graph/records.ts";
import { areCompatible, outputSockets, outputType } from "../src/graph/sockets.ts";
import { after, link, pictureGraph, withNodes } from "./build.ts";
import { DEFINITIONS } from "./definitions.ts";

function verdict(
  document: ReturnType<typeof withNodes>,
  source: string,
  sourceSlot: number,
  target: string,
  targetInput: string,
) {
  const answer = canConnect(document, DEFINITIONS, { source, sourceSlot, target, targetInput });
  return answer.isAllowed ? "allowed" : answer.reason;
}

describe("types", () => {
  test.each([
    ["IMAGE", "IMAGE", true],
    ["IMAGE", "image", true],
    ["IMAGE", "LATENT", false],
    ["*", "LATENT", true],
    ["IMAGE", "*", true],
    ["MASK", "IMAGE,MASK", true],
    ["LATENT", "IMAGE,MASK", false],
  ])("%s into %s: %s", (output, input, fits) => {
    expect(areCompatible(output, input)).toBe(fits);
  });

  test("a reroute has the type of what feeds it", () => {
    const document = after(withNodes("Picture", "Reroute", "Reroute"), link("1:1", "2."), link("2:0", "3."));
    expect(outputType(document, DEFINITIONS, "3", 0)).toBe("MASK");
    expect(verdict(after(document), "3", 0, "3", "")).toContain("itself");
  });
});

describe("refusals say why", () => {
  test("a wrong type names both", () => {
    const document = withNodes("Loader", "Sampler");
    expect(verdict(document, "1", 1, "2", "model")).toBe("CLIP does not fit model, which takes MODEL.");
    expect(verdict(document, "1", 0, "2", "model")).toBe("allowed");
  });

  test("a reroute passes its type on to the check", () => {
    const document = after(withNodes("Picture", "Reroute", "Save"), link("1:1", "2."));
    expect(verdict(document, "2", 0, "3", "images")).toContain("MASK does not fit");
  });

  test("a loop is refused", () => {
    const document = after(withNodes("Reroute", "Reroute"), link("1:0", "2."));
    expect(verdict(document, "2", 0, "1", "")).toBe("That would make a loop.");
  });

  test("a value box fits only widgets", () => {
    const document = withNodes("PrimitiveNode", "Sampler");
    expect(verdict(document, "1", 0, "2", "model")).toContain("widget");
    expect(verdict(document, "1", 0, "2", "steps")).toBe("allowed");
  });
});

test("a link dropped on a node takes the free socket before the taken one and before widgets", () => {
  const document = pictureGraph();
  const sampler = document.nodes["4"];
  if (!sampler) throw new Error("no sampler");
  expect(firstInputFor(document, DEFINITIONS, sampler, "LATENT")).toBe("latent");
  expect(firstInputFor(document, DEFINITIONS, sampler, "INT")).toBe("seed");
  expect(firstInputFor(document, DEFINITIONS, sampler, "AUDIO")).toBeNull();
});

describe("outputs that a schema names", () => {
  const node = {
    input: { required: { schema: ["STRING", { default: "{}", names_outputs_from: 1 }] } },
    output: ["JSON", "*", "*"],
    output_name: ["json", "property_1", "property_2"],
  };
  const definitions = readDefinitions({ Structured: node });

  function outputs(schema: string) {
    const record = { ...pictureGraph().nodes["1"], type: "Structured", outputs: [], values: { schema } };
    return outputSockets(record as GraphNode, definitions).map(({ label, type }) => `${label}:${type}`);
  }

  test("are its properties, as many as there are sockets for", () => {
    const types = { title: { type: "string" }, size: { type: "integer" }, more: { type: "array" } };
    expect(outputs(JSON.stringify({ properties: types }))).toEqual(["json:JSON", "title:STRING", "size:INT"]);
    expect(outputs(JSON.stringify({ properties: { boxes: { type: "array" } } }))).toEqual([
      "json:JSON",
      "boxes:JSON",
    ]);
  });

  test("are none while the schema is being written", () => {
    expect(outputs('{"properties": {')).toEqual(["json:JSON"]);
    expect(outputs("[]")).toEqual(["json:JSON"]);
  });
});
