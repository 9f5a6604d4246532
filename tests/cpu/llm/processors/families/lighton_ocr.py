"""LightOnOCR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    LightOnOcrConfig,
    LightOnOcrProcessor,
    PixtralImageProcessorPil,
    PixtralVisionConfig,
    Qwen3Config,
)


def save_lighton_ocr(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        image_token="<|image_pad|>", image_break_token="<|vision_pad|>", image_end_token="<|vision_end|>"
    )
    config = LightOnOcrConfig(
        vision_config=PixtralVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=64,
            patch_size=4,
        ),
        text_config=Qwen3Config(**tools.text_sizes(head_dim=16)),
        image_token_id=tokenizer.image_token_id,
    )
    pictures = PixtralImageProcessorPil(size={"longest_edge": 32}, patch_size={"height": 8, "width": 8})
    template = tools.chat_template(image="<|image_pad|>")
    tools.save(folder, config, LightOnOcrProcessor(pictures, tokenizer, patch_size=4, chat_template=template))
