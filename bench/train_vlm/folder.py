"""The model folder: all that a LLaVA model of transformers needs but the language model's own weights."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import CLIPImageProcessorPil, LlavaConfig, LlavaForConditionalGeneration

from bench.train_vlm.network import LANGUAGE_MODEL, Language, Vision
from bench.train_vlm.pictures import PICTURE
from runtime.platform.building import building

CONFIG, WEIGHTS = "config.json", "vision.safetensors"
PREFIX = "model."  # where LlavaForConditionalGeneration keeps both halves


def write_vision(vision: Vision, config: LlavaConfig, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stored = config.to_diff_dict() | {"language_model": LANGUAGE_MODEL}
    stored["text_config"] = config.text_config.to_diff_dict()
    for part in (stored, stored["text_config"], stored["vision_config"]):
        for key in ("_name_or_path", "dtype", "quantization_config"):
            part.pop(key, None)
    (folder / CONFIG).write_text(json.dumps(stored, indent=2) + "\n")
    weights = {PREFIX + name: value.half().contiguous() for name, value in vision.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    image_processor().save_pretrained(folder)


def image_processor() -> CLIPImageProcessorPil:
    return CLIPImageProcessorPil(
        size={"height": PICTURE, "width": PICTURE},
        do_center_crop=False,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )


def read_model(folder: Path, language: Language) -> LlavaForConditionalGeneration:
    """The whole model, with the language model's weights in it, in that one's number format."""
    config = LlavaConfig.from_pretrained(folder)
    with building:
        model = LlavaForConditionalGeneration(config)
    weights: dict[str, Tensor] = load_file(folder / WEIGHTS)
    text = language.model.state_dict()
    weights |= {f"model.language_model.{name.removeprefix('model.')}": value for name, value in text.items()}
    weights["lm_head.weight"] = weights.pop("model.language_model.lm_head.weight")
    model.load_state_dict(weights)
    return model.to(language.model.dtype).eval()
