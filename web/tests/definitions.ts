// Small node definitions in object_info's form, as the tests need them.

import { BUILTINS } from "../src/graph/builtin.ts";
import { readDefinitions } from "../src/graph/definitions.ts";

function node(required: object, outputs: string[], more: object = {}) {
  return {
    input: { required },
    input_order: { required: Object.keys(required) },
    output: outputs,
    output_name: outputs,
    output_is_list: outputs.map(() => false),
    python_module: "nodes",
    category: "test",
    output_node: outputs.length === 0,
    ...more,
  };
}

export const OBJECT_INFO = {
  Loader: node({ name: [["glyph", "other"], {}] }, ["MODEL", "CLIP", "VAE"], { display_name: "Load Model" }),
  Encode: node(
    { text: ["STRING", { multiline: true, dynamicPrompts: true }], clip: ["CLIP", {}] },
    ["CONDITIONING"],
    {
      display_name: "Encode Text",
      search_aliases: ["prompt"],
    },
  ),
  Empty: node({ width: ["INT", { default: 512, min: 16, max: 4096, step: 8 }] }, ["LATENT"]),
  Sampler: node(
    {
      model: ["MODEL", {}],
      seed: ["INT", { default: 0, min: 0, max: 2 ** 64, control_after_generate: true }],
      steps: ["INT", { default: 20, min: 1, max: 100 }],
      cfg: ["FLOAT", { default: 8, min: 0, max: 100, step: 0.1, round: 0.01 }],
      sampler_name: [["euler", "heun"], {}],
      positive: ["CONDITIONING", {}],
      latent: ["LATENT", {}],
    },
    ["LATENT"],
    { display_name: "Sampler" },
  ),
  Decode: node({ samples: ["LATENT", {}], vae: ["VAE", {}] }, ["IMAGE"]),
  Pair: node({ a: ["IMAGE", {}], b: ["MASK", {}] }, ["MASK", "IMAGE"]),
  Save: node({ images: ["IMAGE", {}], filename_prefix: ["STRING", { default: "out" }] }, []),
  Show: node({ anything: ["*", {}] }, [], { display_name: "Show Anything" }),
  Picture: node({ image: [["a.png"], { image_upload: true }] }, ["IMAGE", "MASK"], {
    input: { required: { image: [["a.png"], { image_upload: true }] }, optional: { note: ["STRING", {}] } },
    input_order: { required: ["image"], optional: ["note"] },
  }),
  Listing: node({ items: ["COMBO", { options: ["x", "y"], multi_select: {} }] }, ["STRING"]),
  Choice: node(
    {
      how: [
        "COMFY_DYNAMICCOMBO_V3",
        {
          options: [
            { key: "off", inputs: {} },
            { key: "on", inputs: { required: { heat: ["FLOAT", { default: 0.5 }], mask: ["MASK", {}] } } },
          ],
        },
      ],
      after: ["INT", { default: 3 }],
    },
    ["STRING"],
  ),
};

export const DEFINITIONS = { ...readDefinitions(OBJECT_INFO), ...BUILTINS };
