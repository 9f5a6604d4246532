"""Gemma 3, whose window is shorter than the prompts of the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import Gemma3Config, Gemma3ImageProcessorPil, Gemma3Processor


def save_gemma3(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        image_token="<image_soft_token>", boi_token="<start_of_image>", eoi_token="<end_of_image>"
    )
    config = Gemma3Config(
        text_config=tools.text_sizes(head_dim=16, sliding_window=24, query_pre_attn_scalar=16),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 4,
        },
        mm_tokens_per_image=16,
        image_token_id=tokenizer.image_token_id,
        boi_token_id=tokenizer.boi_token_id,
        eoi_token_id=tokenizer.eoi_token_id,
    )
    processor = Gemma3Processor(
        Gemma3ImageProcessorPil(size={"height": 32, "width": 32}),
        tokenizer,
        image_seq_length=16,
        chat_template=tools.chat_template(image="<start_of_image>"),
    )
    tools.save(folder, config, processor)
