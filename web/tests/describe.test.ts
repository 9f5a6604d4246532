import { expect, test } from "vitest";
import { ago, lasting, describe as line } from "../src/panels/describe.ts";

const workflow = (...nodes: [type: string, values: string[]][]) => ({
  nodes: nodes.map(([type, widgets_values]) => ({ type, widgets_values })),
});

test("a prompt is known by the longest text in a node that holds words", () => {
  expect(line(workflow(["CLIPTextEncode", ["snowman"]], ["KSampler", ["euler a long name"]]))).toBe(
    "snowman",
  );
  expect(line(workflow(["MarkdownNote", ["a note"]], ["CLIPTextEncode", ["a", "a red\n fish"]]))).toBe(
    "a red fish",
  );
  expect(line(workflow(["CLIPTextEncode", ["x".repeat(200)]]))).toHaveLength(91);
});

test("without words it is known by its size", () => {
  expect(line(workflow(["KSampler", ["euler"]], ["SaveImage", ["out"]]))).toBe("2 nodes");
  expect(line(null)).toBe("Prompt from elsewhere");
});

test("times are said as people say them", () => {
  expect([ago(0, 5000), ago(0, 120_000), ago(0, 7_200_000)]).toEqual(["just now", "2 min ago", "2 h ago"]);
  expect([lasting(1234), lasting(69_000)]).toEqual(["1.2 s", "1 min 9 s"]);
});
