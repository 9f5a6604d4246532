"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL with its features for deeper layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import (
    Qwen2_5_VLConfig,
    Qwen2_5_VLProcessor,
    Qwen2VLConfig,
    Qwen2VLImageProcessorPil,
    Qwen2VLProcessor,
    Qwen3VLConfig,
    Qwen3VLProcessor,
)

_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
_VIDEO = "<|vision_start|><|video_pad|><|vision_end|>"
_VIDEOS = {"size": {"shortest_edge": 64, "longest_edge": 4096}, "fps": 2, "max_frames": 6}


def _save(folder: Path, tools: Any, config: type, processor: type, text: Any, vision: Any) -> None:
    tokenizer = tools.tokenizer(
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
        vision_start_token="<|vision_start|>",
        vision_end_token="<|vision_end|>",
    )
    made = config(
        text_config=tools.text_sizes(**text),
        vision_config={"num_heads": 2, "patch_size": 4, "temporal_patch_size": 2, "depth": 3, **vision},
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        vision_start_token_id=tokenizer.vision_start_token_id,
        vision_end_token_id=tokenizer.vision_end_token_id,
    )
    images = Qwen2VLImageProcessorPil(patch_size=4, merge_size=2, min_pixels=64, max_pixels=4096)
    template = tools.chat_template(image=_IMAGE, video=_VIDEO)
    tools.save(folder, made, tools.unchecked(processor)(images, tokenizer, chat_template=template))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(_VIDEOS))


def _rope(**more: Any) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2], **more}


def save_qwen2_vl(folder: Path, tools: Any) -> None:
    vision = {"embed_dim": 32, "hidden_size": 64, "mlp_ratio": 2, "spatial_merge_size": 2}
    _save(folder, tools, Qwen2VLConfig, Qwen2VLProcessor, {"rope_parameters": _rope()}, vision)


def save_qwen2_5_vl(folder: Path, tools: Any) -> None:
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "out_hidden_size": 64,
        "window_size": 16,
        "fullatt_block_indexes": [1],
    }
    _save(folder, tools, Qwen2_5_VLConfig, Qwen2_5_VLProcessor, {"rope_parameters": _rope()}, vision)


def save_qwen3_vl(folder: Path, tools: Any) -> None:
    text = {"head_dim": 16, "rope_parameters": _rope(mrope_interleaved=True)}
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
        "spatial_merge_size": 2,
    }
    _save(folder, tools, Qwen3VLConfig, Qwen3VLProcessor, text, vision)
