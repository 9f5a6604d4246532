"""GLM-4.1V and GLM-4.6V."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    Glm4vConfig,
    Glm4vImageProcessorPil,
    Glm4vProcessor,
    Glm46VConfig,
    Glm46VImageProcessorPil,
    Glm46VProcessor,
)


def save_glm4v(folder: Path, tools: Any) -> None:
    _save(folder, tools, Glm4vConfig, Glm4vImageProcessorPil, Glm4vProcessor)


def save_glm46v(folder: Path, tools: Any) -> None:
    _save(folder, tools, Glm46VConfig, Glm46VImageProcessorPil, Glm46VProcessor)


def _save(folder: Path, tools: Any, config: type, images: type, processor: type) -> None:
    tokenizer = tools.tokenizer(
        "<|begin_of_image|>",
        "<|end_of_image|>",
        "<|begin_of_video|>",
        "<|end_of_video|>",
        image_token="<|image|>",
        video_token="<|video|>",
    )
    number = tokenizer.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    made = config(
        text_config={
            "model_type": "glm4v_text",
            **tools.text_sizes(rope_parameters={**rope, "partial_rotary_factor": 0.5}),
        },
        vision_config={
            "model_type": "glm4v_vision",
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "out_hidden_size": 64,
            "num_heads": 2,
            "image_size": 32,
            "patch_size": 4,
            "temporal_patch_size": 2,
        },
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        image_start_token_id=number("<|begin_of_image|>"),
        image_end_token_id=number("<|end_of_image|>"),
        video_start_token_id=number("<|begin_of_video|>"),
        video_end_token_id=number("<|end_of_video|>"),
    )
    template = tools.chat_template(image="<|begin_of_image|><|image|><|end_of_image|>")
    pictures = images(patch_size=4, size={"shortest_edge": 64, "longest_edge": 4096})
    tools.save(folder, made, tools.unchecked(processor)(pictures, tokenizer, chat_template=template))
