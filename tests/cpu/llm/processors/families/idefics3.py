"""Idefics3 and SmolVLM, whose pictures of the contract become up to four tiles and a view of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    Idefics3Config,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    LlamaConfig,
    SmolVLMConfig,
    SmolVLMImageProcessorPil,
)


def save_idefics3(folder: Path, tools: Any) -> None:
    _save(folder, tools, Idefics3Config, Idefics3ImageProcessorPil, Idefics3Processor)


def save_smolvlm(folder: Path, tools: Any) -> None:
    # What such folders say; the class itself asks for num2words.
    kind = type("SmolVLMProcessor", (Idefics3Processor,), {})
    _save(folder, tools, SmolVLMConfig, SmolVLMImageProcessorPil, kind)


def _save(folder: Path, tools: Any, config: type, images: type, processor: type) -> None:
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
    tokenizer = tools.tokenizer(
        "<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *tiles
    )
    made = config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 16,
            "patch_size": 4,
        },
        text_config=LlamaConfig(**tools.text_sizes()),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    tools.save(
        folder,
        made,
        processor(
            images(size={"longest_edge": 32}, max_image_size={"longest_edge": 16}),
            tokenizer,
            image_seq_len=4,
            chat_template=tools.chat_template(image="<image>"),
        ),
    )
