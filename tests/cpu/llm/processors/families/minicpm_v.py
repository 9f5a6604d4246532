"""MiniCPM-V 4.6 and 4.7; pictures of the contract become up to four slices and a view of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    MiniCPMV4_6Config,
    MiniCPMV4_6ImageProcessorPil,
    MiniCPMV4_6Processor,
    MiniCPMV4_7Config,
    MiniCPMV4_7Processor,
    Qwen3_5TextConfig,
)

from runtime.llm.processors.assemble import no_videos


def save_minicpmv4_6(folder: Path, tools: Any) -> None:
    _save(folder, tools, MiniCPMV4_6Config, MiniCPMV4_6Processor)


def save_minicpmv4_7(folder: Path, tools: Any) -> None:
    _save(folder, tools, MiniCPMV4_7Config, MiniCPMV4_7Processor)


def _save(folder: Path, tools: Any, config: type, processor: type) -> None:
    tokenizer = tools.tokenizer(
        image_token="<unk>",
        video_token="<vid>",
        image_start_token="<image>",
        image_end_token="</image>",
        slice_start_token="<slice>",
        slice_end_token="</slice>",
        image_id_start_token="<image_id>",
        image_id_end_token="</image_id>",
    )
    marks = {
        "image_start_id": tokenizer.image_start_token_id,
        "image_end_id": tokenizer.image_end_token_id,
        "slice_start_id": tokenizer.slice_start_token_id,
        "slice_end_id": tokenizer.slice_end_token_id,
        "newline_id": tokenizer.encode("\n", add_special_tokens=False)[0],
    }
    made = config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 4,
        },
        text_config=Qwen3_5TextConfig(
            **tools.text_sizes(
                num_hidden_layers=4,
                initializer_range=0.1,
                head_dim=32,
                linear_key_head_dim=16,
                linear_value_head_dim=16,
                linear_num_key_heads=2,
                linear_num_value_heads=4,
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 10000.0,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [4, 2, 2],
                    "mrope_interleaved": True,
                },
            )
        ),
        insert_layer_id=1,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        **(marks if config is MiniCPMV4_7Config else {}),
    )
    images = MiniCPMV4_6ImageProcessorPil(max_slice_nums=4, scale_resolution=16, patch_size=4)
    template = tools.chat_template(image="<unk>", video="<vid>")
    kind = tools.unchecked(processor)
    tools.save(folder, made, kind(images, no_videos(), tokenizer, chat_template=template))
