import { describe, expect, test } from "vitest";
import { readBinary, readMessage, type ServerEvent } from "../src/api/events.ts";
import { readHistory } from "../src/api/history.ts";
import { readRefusal } from "../src/api/refusal.ts";
import { caughtUp, NO_RUNS, queued, type Runs, reduce } from "../src/state/runs.ts";

function message(type: string, data: object): ServerEvent {
  const event = readMessage(JSON.stringify({ type, data }));
  if (!event) throw new Error(`${type} is not known`);
  return event;
}

function told(state: Runs, ...messages: [type: string, data: object][]): Runs {
  return messages.reduce((current, [type, data]) => reduce(current, message(type, data)), state);
}

const of = (prompt_id: string, data: object = {}) => ({ prompt_id, ...data });

function previewFrame(about: object, image: number[]): ArrayBuffer {
  const json = new TextEncoder().encode(JSON.stringify(about));
  const frame = new Uint8Array(8 + json.length + image.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, 4);
  view.setUint32(4, json.length);
  frame.set(json, 8);
  frame.set(image, 8 + json.length);
  return frame.buffer;
}

describe("frames", () => {
  test("a preview names its prompt, its node and its kind of picture", async () => {
    const event = readBinary(
      previewFrame(
        { prompt_id: "p", node_id: "4.0.1", display_node_id: "4", image_type: "image/png" },
        [1, 2],
      ),
    );
    if (event?.kind !== "preview") throw new Error("not a preview");
    expect([event.promptId, event.node, event.image.type]).toEqual(["p", "4", "image/png"]);
    expect([...new Uint8Array(await event.image.arrayBuffer())]).toEqual([1, 2]);
  });

  test("other binary frames, cut ones and unknown messages are nothing", () => {
    expect(readBinary(new Uint8Array([0, 0, 0, 3, 0, 0, 0, 1, 52, 104]).buffer)).toBeNull();
    expect(readBinary(previewFrame({ prompt_id: "p" }, []).slice(0, 12))).toBeNull();
    expect(readMessage("not json")).toBeNull();
    expect(readMessage('{"type":"pack-event","data":{}}')).toBeNull();
  });
});

describe("what runs", () => {
  test("a prompt goes from waiting over running to success, with progress on its nodes", () => {
    const nodes = { "4": { value: 3, max: 9, state: "running", display_node_id: "4" } };
    const running = told(
      queued(NO_RUNS, "p"),
      ["execution_start", of("p")],
      ["execution_cached", of("p", { nodes: ["1"] })],
      ["executing", of("p", { node: "4" })],
      ["progress_state", of("p", { nodes })],
    );
    expect(running.shown).toBe("p");
    expect(running.runs.p?.nodes).toEqual({
      "1": { state: "cached", value: 1, max: 1 },
      "4": { state: "running", value: 3, max: 9 },
    });
    const ended = told(running, ["execution_success", of("p")], ["executing", of("p", { node: null })]);
    expect(ended.runs.p?.state).toBe("success");
    expect(ended.runs.p?.nodes["4"]?.state).toBe("finished");
  });

  test("events that come before the answer to the post are not lost", () => {
    const early = told(NO_RUNS, ["execution_start", of("p")], ["execution_success", of("p")]);
    expect(queued(early, "p")).toBe(early);
  });

  test("of two running prompts the one that still runs is shown when the other ends", () => {
    const both = told(NO_RUNS, ["execution_start", of("a")], ["execution_start", of("b")]);
    expect(both.shown).toBe("b");
    expect(told(both, ["execution_success", of("b")], ["executing", of("b", { node: null })]).shown).toBe(
      "a",
    );
  });

  test("a failure marks its node and stays shown", () => {
    const failed = told(
      NO_RUNS,
      ["execution_start", of("a")],
      ["execution_start", of("p")],
      [
        "execution_error",
        of("p", { node_id: "4", node_type: "KSampler", exception_message: "no room\n", traceback: ["line"] }),
      ],
      ["executing", of("p", { node: null })],
    );
    expect([failed.shown, failed.runs.p?.state, failed.runs.p?.nodes["4"]?.state]).toEqual([
      "p",
      "error",
      "failed",
    ]);
    expect(failed.failure).toMatchObject({ node: "4", message: "no room" });
  });

  test("outputs and streamed text belong to the box on the canvas", () => {
    const shown = told(
      NO_RUNS,
      [
        "executed",
        of("p", {
          node: "9.0.1",
          display_node: "9",
          output: { images: [{ filename: "a.png", subfolder: "", type: "temp" }], text: ["x"] },
        }),
      ],
      ["treadle.text", of("p", { node: "3", text: "so far" })],
    );
    expect(shown.outputs["9"]).toEqual({
      images: [{ filename: "a.png", subfolder: "", type: "temp" }],
      texts: ["x"],
    });
    expect(shown.texts["3"]).toBe("so far");
  });

  test("what ended while the connection was lost is taken from the history", () => {
    const lost = told(NO_RUNS, ["execution_start", of("p")], ["executing", of("p", { node: "4" })]);
    const [item] = readHistory({
      p: {
        prompt: [1, "p", {}, {}, ["9"]],
        outputs: { "9": { text: ["done"] } },
        status: { status_str: "success", messages: [] },
      },
    });
    if (!item) throw new Error("no item");
    const found = caughtUp(lost, item);
    expect([found.runs.p?.state, found.runs.p?.nodes["4"]?.state]).toEqual(["success", "finished"]);
    expect(found.outputs["9"]?.texts).toEqual(["done"]);
  });
});

describe("answers", () => {
  test("history is newest first, with its workflow, times and failure", () => {
    const item = (status: object) => ({
      prompt: [1, "x", {}, { extra_pnginfo: { workflow: { nodes: [] } } }, []],
      outputs: {},
      status,
    });
    const items = readHistory({
      old: item({
        status_str: "error",
        messages: [
          ["execution_start", { timestamp: 1000 }],
          ["execution_error", { timestamp: 3500, exception_message: "broke", node_id: "2" }],
        ],
      }),
      new: item({ status_str: "success", messages: [] }),
    });
    expect(items.map(({ promptId }) => promptId)).toEqual(["new", "old"]);
    expect(items[1]).toMatchObject({
      state: "error",
      error: "broke",
      failedNode: "2",
      durationMs: 2500,
      workflow: { nodes: [] },
    });
  });

  test("complaints name their node and their input, and say what the message does not", () => {
    const refusal = readRefusal(
      {
        error: { type: "prompt_outputs_failed_validation", message: "Prompt outputs failed validation" },
        node_errors: {
          "4": {
            errors: [
              {
                message: "Value not in list",
                details: "name: 'zz' not in ['a']",
                extra_info: { input_name: "name" },
              },
            ],
          },
          "5": {
            errors: [
              { message: "Required input is missing", details: "model", extra_info: { input_name: "model" } },
            ],
          },
        },
      },
      "fallback",
    );
    expect(refusal.nodes["4"]).toEqual([
      { input: "name", message: "Value not in list: name: 'zz' not in ['a']" },
    ]);
    expect(refusal.nodes["5"]).toEqual([{ input: "model", message: "Required input is missing" }]);
  });

  test("an unknown node type is shown on its node", () => {
    const refusal = readRefusal(
      { error: { message: "Node 'X' not found.", extra_info: { node_id: "7" } }, node_errors: [] },
      "",
    );
    expect(refusal.nodes["7"]).toEqual([{ input: null, message: "Node 'X' not found." }]);
  });
});
