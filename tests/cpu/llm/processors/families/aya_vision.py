"""Aya Vision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    AyaVisionConfig,
    AyaVisionProcessor,
    Cohere2Config,
    GotOcr2ImageProcessorPil,
    SiglipVisionConfig,
)


def save_aya_vision(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        "<image>",
        "<|START_OF_IMG|>",
        "<|END_OF_IMG|>",
        "<|IMG_PATCH|>",
        "<|IMG_LINE_BREAK|>",
        "TILE",
        "TILE_GLOBAL",
    )
    config = AyaVisionConfig(
        vision_config=SiglipVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=16,
            patch_size=4,
            vision_use_head=False,
        ),
        text_config=Cohere2Config(**tools.text_sizes(sliding_window=24)),
        image_token_id=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
    )
    processor = AyaVisionProcessor(
        GotOcr2ImageProcessorPil(size={"height": 16, "width": 16}, max_patches=4),
        tokenizer,
        patch_size=4,
        img_size=16,
        downsample_factor=2,
        chat_template=tools.chat_template(image="<image>"),
    )
    tools.save(folder, config, processor)
