"""InternVL 3 and Qianfan-OCR; pictures of the contract become up to four tiles and a view of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    GotOcr2ImageProcessorPil,
    InternVLConfig,
    InternVLProcessor,
    InternVLVisionConfig,
    QianfanOCRConfig,
    QianfanOCRProcessor,
    QianfanOCRVisionConfig,
    Qwen2Config,
    Qwen3Config,
)

_TOWER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
}


def save_internvl(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    config = InternVLConfig(
        vision_config=InternVLVisionConfig(**_TOWER),
        text_config=Qwen2Config(**tools.text_sizes()),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
    )
    processor = tools.unchecked(InternVLProcessor)(
        _images(),
        tokenizer,
        image_seq_length=4,
        chat_template=tools.chat_template(image="<IMG_CONTEXT>", video="<video>"),
    )
    tools.save(folder, config, processor)


def save_qianfan_ocr(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        "<image>", start_image_token="<img>", end_image_token="</img>", context_image_token="<IMG_CONTEXT>"
    )
    config = QianfanOCRConfig(
        vision_config=QianfanOCRVisionConfig(**_TOWER),
        text_config=Qwen3Config(**tools.text_sizes(head_dim=16)),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
    )
    template = tools.chat_template(image="<image>")
    processor = QianfanOCRProcessor(_images(), tokenizer, image_seq_length=4, chat_template=template)
    tools.save(folder, config, processor)


def _images() -> GotOcr2ImageProcessorPil:
    return GotOcr2ImageProcessorPil(size={"height": 16, "width": 16}, max_patches=4)
