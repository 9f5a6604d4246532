"""InternVL 3, whose pictures of the contract become up to four tiles and a view of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    GotOcr2ImageProcessorPil,
    InternVLConfig,
    InternVLProcessor,
    InternVLVisionConfig,
    Qwen2Config,
)


def save_internvl(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    config = InternVLConfig(
        vision_config=InternVLVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=16,
            patch_size=4,
        ),
        text_config=Qwen2Config(**tools.text_sizes()),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
    )
    processor = tools.unchecked(InternVLProcessor)(
        GotOcr2ImageProcessorPil(size={"height": 16, "width": 16}, max_patches=4),
        tokenizer,
        image_seq_length=4,
        chat_template=tools.chat_template(image="<IMG_CONTEXT>", video="<video>"),
    )
    tools.save(folder, config, processor)
