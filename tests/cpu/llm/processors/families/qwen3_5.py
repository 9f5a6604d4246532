"""Qwen3.5: three recurrent layers to each one that attends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import Qwen2VLImageProcessorPil, Qwen3_5Config, Qwen3_5MoeConfig, Qwen3VLProcessor

_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
_VIDEO = "<|vision_start|><|video_pad|><|vision_end|>"
_VIDEOS = {"size": {"shortest_edge": 64, "longest_edge": 4096}, "fps": 2, "max_frames": 6}


def _save(folder: Path, tools: Any, config: type, **text: Any) -> None:
    tokenizer = tools.tokenizer(
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
        vision_start_token="<|vision_start|>",
        vision_end_token="<|vision_end|>",
    )
    made = config(
        text_config=tools.text_sizes(
            num_hidden_layers=4,
            # With larger weights transformers' own chunks differ from its whole forward by 5e-4: the
            # recurrence is computed in float32 and amplifies what rounding does.
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
            **text,
        ),
        vision_config={
            "num_heads": 2,
            "patch_size": 4,
            "temporal_patch_size": 2,
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "out_hidden_size": 64,
            "num_position_embeddings": 64,
            "spatial_merge_size": 2,
        },
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        vision_start_token_id=tokenizer.vision_start_token_id,
        vision_end_token_id=tokenizer.vision_end_token_id,
    )
    images = Qwen2VLImageProcessorPil(patch_size=4, merge_size=2, min_pixels=64, max_pixels=4096)
    template = tools.chat_template(image=_IMAGE, video=_VIDEO)
    processor = tools.unchecked(Qwen3VLProcessor)(images, tokenizer, chat_template=template)
    tools.save(folder, made, processor)
    (folder / "video_preprocessor_config.json").write_text(json.dumps(_VIDEOS))


def save_qwen3_5(folder: Path, tools: Any) -> None:
    _save(folder, tools, Qwen3_5Config)


def save_qwen3_5_moe(folder: Path, tools: Any) -> None:
    experts = {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
    }
    _save(folder, tools, Qwen3_5MoeConfig, **experts)
