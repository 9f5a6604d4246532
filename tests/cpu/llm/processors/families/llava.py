"""LLaVA 1.5 and ViP-LLaVA with a CLIP tower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaProcessor,
    VipLlavaConfig,
)


def save_llava(folder: Path, tools: Any) -> None:
    _save(folder, tools, LlavaConfig)


def save_vipllava(folder: Path, tools: Any) -> None:
    _save(folder, tools, VipLlavaConfig, vision_feature_layers=[-1, -2])


def _save(folder: Path, tools: Any, kind: type, **more: Any) -> None:
    tokenizer = tools.tokenizer(image_token="<image>")
    config = kind(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=2,
            image_size=16,
            patch_size=4,
        ),
        text_config=LlamaConfig(**tools.text_sizes()),
        image_token_id=tokenizer.image_token_id,
        **more,
    )
    images = CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tools.chat_template(image="<image>"),
    )
    tools.save(folder, config, processor)
