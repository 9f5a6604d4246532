"""The model folder: all that a LLaVA model of transformers needs but the language model's own weights."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import CLIPImageProcessorPil, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

from bench.train_vlm.network import LANGUAGE_MODEL, PATCH, PLACEHOLDER, Language, Vision
from bench.train_vlm.pictures import PICTURE
from runtime.platform.building import building

CONFIG, WEIGHTS, TEMPLATE = "config.json", "vision.safetensors", "chat_template.jinja"
PREFIX = "model."  # where LlavaForConditionalGeneration keeps both halves
CHAT = """\
{%- for message in messages -%}
{%- if loop.first and message.role != 'system' -%}
{{ '<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}
{%- endif -%}
{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content if part.type == 'image' -%}{{ '<reponame>' }}{%- endfor -%}
{%- for part in message.content if part.type == 'text' -%}{{ part.text }}{%- endfor -%}
{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""


def write_model(vision: Vision, config: LlavaConfig, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stored = config.to_diff_dict() | {"language_model": LANGUAGE_MODEL}
    for part in (stored, stored["text_config"], stored["vision_config"]):
        for key in ("_name_or_path", "_model_name_or_path", "dtype", "quantization_config"):
            part.pop(key, None)
    _write_json(stored, folder / CONFIG)
    weights = {PREFIX + name: value.half().contiguous() for name, value in vision.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    image_processor = CLIPImageProcessorPil(
        size={"height": PICTURE, "width": PICTURE},
        do_center_crop=False,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    image_processor.save_pretrained(folder)
    placing = {
        "processor_class": "LlavaProcessor",
        "patch_size": PATCH,
        "num_additional_image_tokens": 1,  # the class token, which "default" leaves out again
        "vision_feature_select_strategy": config.vision_feature_select_strategy,
        "image_token": PLACEHOLDER,
    }
    _write_json(placing, folder / "processor_config.json")
    (folder / TEMPLATE).write_text(CHAT)


def read_model(folder: Path, language: Language) -> LlavaForConditionalGeneration:
    """The whole model, with the language model's weights in it, in that one's number format."""
    config = LlavaConfig.from_pretrained(folder)
    with building:
        model = LlavaForConditionalGeneration(config)
    weights: dict[str, Tensor] = load_file(folder / WEIGHTS)
    for name, value in language.model.state_dict().items():
        inner = name.removeprefix("model.")
        weights[name if name == inner else f"model.language_model.{inner}"] = value
    model.load_state_dict(weights)
    return model.to(language.model.dtype).eval()


def read_processor(folder: Path, language: Language) -> LlavaProcessor:
    settings = json.loads((folder / "processor_config.json").read_text())
    del settings["processor_class"]
    return LlavaProcessor(
        image_processor=CLIPImageProcessorPil.from_pretrained(folder),
        tokenizer=language.tokenizer,
        chat_template=(folder / TEMPLATE).read_text(),
        **settings,
    )


def _write_json(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
