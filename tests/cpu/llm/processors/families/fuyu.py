"""Fuyu, whose processor drops the blank that its tokenizer puts before a row of places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, normalizers
from transformers import FuyuConfig, FuyuImageProcessorPil, FuyuProcessor, PersimmonConfig


def save_fuyu(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer()
    names = ("|SPEAKER|", "|NEWLINE|", "<0x04>")
    tokenizer.add_tokens([AddedToken(each, normalized=True, special=True) for each in names])
    blank = normalizers.Replace(Regex(r"^\|SPEAKER\|\|"), " |SPEAKER||")
    tokenizer.backend_tokenizer.normalizer = blank
    config = FuyuConfig(
        text_config=PersimmonConfig(**tools.text_sizes(num_key_value_heads=4)),
        patch_size=8,
        image_token_id=tokenizer.convert_tokens_to_ids("|SPEAKER|"),
    )
    processor = FuyuProcessor(
        FuyuImageProcessorPil(size={"height": 32, "width": 48}, patch_size={"height": 8, "width": 8}),
        tokenizer,
    )
    processor.chat_template = tools.chat_template()
    tools.save(folder, config, processor)
