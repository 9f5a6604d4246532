// What an output node shows: pictures by their stored names, and text.

import { asList, asObject, asString, isObject } from "../graph/json.ts";

export interface StoredFile {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
}

export interface NodeOutput {
  readonly images: readonly StoredFile[];
  readonly texts: readonly string[];
}

export function readOutput(output: unknown): NodeOutput {
  const parts = asObject(output);
  const files = [...asList(parts.images), ...asList(parts.gifs)].filter(isObject);
  return {
    images: files.map((file) => ({
      filename: asString(file.filename),
      subfolder: asString(file.subfolder),
      type: asString(file.type, "output"),
    })),
    texts: asList(parts.text).map((text) => (typeof text === "string" ? text : JSON.stringify(text))),
  };
}
