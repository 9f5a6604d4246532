"""Pixtral in LLaVA's form and in Mistral 3's, which merges four patches to one feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    LlavaConfig,
    Mistral3Config,
    MistralConfig,
    PixtralImageProcessorPil,
    PixtralVisionConfig,
)

from runtime.llm.processors.assemble import class_named


def save_pixtral(folder: Path, tools: Any) -> None:
    config = {"vision_feature_layer": -1, "vision_feature_select_strategy": "full"}
    _save(folder, tools, LlavaConfig, config, merge=1)


def save_mistral3(folder: Path, tools: Any) -> None:
    _save(folder, tools, Mistral3Config, {"spatial_merge_size": 2}, merge=2)


def _save(folder: Path, tools: Any, config: type, more: dict[str, Any], merge: int) -> None:
    tokenizer = tools.tokenizer("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    made = config(
        vision_config=PixtralVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=64,
            patch_size=4,
        ),
        text_config=MistralConfig(**tools.text_sizes(sliding_window=None)),
        image_token_id=tokenizer.convert_tokens_to_ids("[IMG]"),
        **more,
    )
    processor = class_named("PixtralProcessor")(
        PixtralImageProcessorPil(size={"longest_edge": 32}, patch_size={"height": 4, "width": 4}),
        tokenizer,
        patch_size=4,
        spatial_merge_size=merge,
        chat_template=tools.chat_template(image="[IMG]"),
    )
    tools.save(folder, made, processor)
