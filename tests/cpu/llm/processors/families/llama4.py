"""Llama 4; pictures of the contract become up to four tiles and a view of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import Llama4Config, Llama4Processor

from runtime.llm.processors.tiles import Llama4ImageProcessor


def save_llama4(folder: Path, tools: Any) -> None:
    marks = ("<|image_start|>", "<|image_end|>", "<|image|>", "<|tile_x_separator|>", "<|tile_y_separator|>")
    tokenizer = tools.tokenizer(*marks, "<|patch|>")
    config = Llama4Config(
        vision_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 128,
            "vision_output_dim": 48,
            "projector_input_dim": 48,
            "projector_output_dim": 48,
            "image_size": 16,
            "patch_size": 4,
        },
        text_config=tools.text_sizes(
            head_dim=16,
            intermediate_size_mlp=96,
            num_local_experts=4,
            num_hidden_layers=4,
            attention_chunk_size=24,
            floor_scale=10,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<|patch|>"),
    )
    images = Llama4ImageProcessor(size={"height": 16, "width": 16}, max_patches=4)
    processor = tools.unchecked(Llama4Processor)(
        images, tokenizer, patch_size=4, chat_template=tools.chat_template(image="<|image|>")
    )
    tools.save(folder, config, processor)
