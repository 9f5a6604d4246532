import { expect, test } from "vitest";
import { readPngTexts } from "../src/graph/png.ts";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

function bytes(text: string): number[] {
  return [...new TextEncoder().encode(text)];
}

function chunk(type: string, data: readonly number[]): number[] {
  const length = [24, 16, 8, 0].map((shift) => (data.length >>> shift) & 255);
  return [...length, ...bytes(type), ...data, 0, 0, 0, 0];
}

async function deflated(text: string): Promise<number[]> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
  return [...new Uint8Array(await new Response(stream).arrayBuffer())];
}

test("plain, international and compressed texts are read by keyword", async () => {
  const file = new Uint8Array([
    ...SIGNATURE,
    ...chunk("IHDR", Array(13).fill(0)),
    ...chunk("tEXt", bytes('prompt\0{"1":{}}')),
    ...chunk("iTXt", bytes("workflow\0\0\0en\0Titel\0größer")),
    ...chunk("iTXt", [...bytes("packed\0\x01\0\0\0"), ...(await deflated("größer"))]),
    ...chunk("zTXt", [...bytes("old\0\0"), ...(await deflated("plain"))]),
    ...chunk("zTXt", [...bytes("broken\0\0"), 1, 2, 3]),
    ...chunk("IEND", []),
    ...chunk("tEXt", bytes("after\0the end")),
  ]);
  expect(Object.fromEntries(await readPngTexts(file))).toEqual({
    prompt: '{"1":{}}',
    workflow: "größer",
    packed: "größer",
    old: "plain",
  });
});

test("an animated picture has its texts behind the first image", async () => {
  const file = new Uint8Array([
    ...SIGNATURE,
    ...chunk("IHDR", Array(13).fill(0)),
    ...chunk("IDAT", [1, 0, 2]),
    ...chunk("comf", bytes('prompt\0{"1":{}}')),
    ...chunk("fdAT", [0, 0, 0, 1]),
    ...chunk("IEND", []),
  ]);
  expect(Object.fromEntries(await readPngTexts(file))).toEqual({ prompt: '{"1":{}}' });
});

test("a file that is cut off or no PNG gives what it has, without an error", async () => {
  const whole = new Uint8Array([
    ...SIGNATURE,
    ...chunk("tEXt", bytes("a\0b")),
    ...chunk("tEXt", bytes("c\0d")),
  ]);
  expect([...(await readPngTexts(whole.subarray(0, whole.length - 9))).keys()]).toContain("a");
  expect(await readPngTexts(new Uint8Array([1, 2, 3]))).toEqual(new Map());
});
