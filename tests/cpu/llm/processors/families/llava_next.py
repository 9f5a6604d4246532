"""LLaVA-Next and LLaVA-OneVision: a picture in as many tiles as its shape asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaNextConfig,
    LlavaNextImageProcessorPil,
    LlavaNextProcessor,
    LlavaOnevisionConfig,
    LlavaOnevisionImageProcessorPil,
    LlavaOnevisionProcessor,
    Qwen2Config,
    SiglipVisionConfig,
)

_TOWER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
}
_TILINGS = [[16, 32], [32, 16], [32, 32], [16, 48]]


def save_llava_next(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(image_token="<image>")
    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(**_TOWER),
        text_config=LlamaConfig(**tools.text_sizes()),
        image_token_id=tokenizer.image_token_id,
        image_grid_pinpoints=_TILINGS,
    )
    processor = LlavaNextProcessor(
        LlavaNextImageProcessorPil(
            size={"shortest_edge": 16},
            crop_size={"height": 16, "width": 16},
            image_grid_pinpoints=_TILINGS,
        ),
        tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tools.chat_template(image="<image>"),
    )
    tools.save(folder, config, processor)


def save_llava_onevision(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(image_token="<image>", video_token="<video>")
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(**_TOWER),
        text_config=Qwen2Config(**tools.text_sizes()),
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        image_grid_pinpoints=_TILINGS,
    )
    processor = tools.unchecked(LlavaOnevisionProcessor)(
        LlavaOnevisionImageProcessorPil(size={"height": 16, "width": 16}, image_grid_pinpoints=_TILINGS),
        tokenizer,
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        chat_template=tools.chat_template(image="<image>", video="<video>"),
    )
    tools.save(folder, config, processor)
