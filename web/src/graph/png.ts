// The text chunks of a PNG file, by keyword: where pictures carry the workflow that made them.

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

export function isPng(bytes: Uint8Array): boolean {
  return SIGNATURE.every((byte, index) => bytes[index] === byte);
}

/** tEXt, zTXt, iTXt, and the comf of ComfyUI's animated PNGs; a damaged chunk is left out. */
export async function readPngTexts(bytes: Uint8Array): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  if (!isPng(bytes)) return texts;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = SIGNATURE.length;
  while (at + 12 <= bytes.length) {
    const length = view.getUint32(at);
    const type = latin1(bytes.subarray(at + 4, at + 8));
    const text = await readChunk(type, bytes.subarray(at + 8, at + 8 + length));
    if (text) texts.set(...text);
    if (type === "IEND") break;
    at += length + 12;
  }
  return texts;
}

async function readChunk(type: string, data: Uint8Array): Promise<[string, string] | null> {
  const end = data.indexOf(0);
  if (end < 0 || !["tEXt", "zTXt", "iTXt", "comf"].includes(type)) return null;
  const keyword = latin1(data.subarray(0, end));
  if (type === "tEXt" || type === "comf") return [keyword, latin1(data.subarray(end + 1))];
  if (type === "zTXt") return inflated(keyword, data.subarray(end + 2), latin1);
  const isCompressed = data[end + 1] === 1;
  const languageEnd = data.indexOf(0, end + 3);
  const translatedEnd = languageEnd < 0 ? -1 : data.indexOf(0, languageEnd + 1);
  if (translatedEnd < 0) return null;
  const body = data.subarray(translatedEnd + 1);
  return isCompressed ? inflated(keyword, body, utf8) : [keyword, utf8(body)];
}

async function inflated(
  keyword: string,
  data: Uint8Array,
  decode: (bytes: Uint8Array) => string,
): Promise<[string, string] | null> {
  try {
    const stream = new Blob([data.slice()]).stream().pipeThrough(new DecompressionStream("deflate"));
    return [keyword, decode(new Uint8Array(await new Response(stream).arrayBuffer()))];
  } catch {
    return null;
  }
}

function latin1(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}

function utf8(bytes: Uint8Array): string {
  return new TextDecoder("utf-8").decode(bytes);
}
