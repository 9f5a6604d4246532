"""The configuration of a UNet or ControlNet in the original naming, told from its tensors' shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import Unsupported

_HEAD = 64
_FIXED_HEADS = 8
_TIME_EMBEDDING = 256


@dataclass(frozen=True, slots=True)
class _Level:
    """One resolution on the way down: its width, its residual blocks, the transformer blocks after each."""

    channels: int
    blocks: int
    depth: int


def unet_config(shapes: Shapes) -> dict[str, Any]:
    """For UNet2DConditionModel."""
    if "out.2.weight" not in shapes:
        raise Unsupported(
            "a UNet in diffusers' naming is loaded from its folder with config.json, not from a file"
        )
    levels = _levels(shapes)
    up = ["CrossAttnUpBlock2D" if level.depth else "UpBlock2D" for level in reversed(levels)]
    return {**_shared(shapes, levels), "up_block_types": up, "out_channels": shapes["out.2.weight"][0]}


def control_config(shapes: Shapes) -> dict[str, Any]:
    """For ControlNetModel."""
    if "input_hint_block.0.weight" not in shapes:
        raise Unsupported(
            "a ControlNet in diffusers' naming is loaded from its folder with config.json, not from a file"
        )
    hint = [shapes[f"input_hint_block.{place}.weight"][0] for place in (0, 4, 8, 12)]
    return {**_shared(shapes, _levels(shapes)), "conditioning_embedding_out_channels": hint}


def _shared(shapes: Shapes, levels: list[_Level]) -> dict[str, Any]:
    attention = next((name for name in shapes if name.endswith("attn2.to_k.weight")), None)
    if attention is None:
        raise Unsupported("this UNet has no cross-attention and cannot be asked with a prompt")
    projection = next(name for name in shapes if name.endswith(".1.proj_in.weight"))
    # SD1.5 projects by convolution and has 8 heads everywhere; later ones have heads of width 64
    linear = len(shapes[projection]) == 2
    config: dict[str, Any] = {
        "in_channels": shapes["input_blocks.0.0.weight"][1],
        "block_out_channels": [level.channels for level in levels],
        "down_block_types": ["CrossAttnDownBlock2D" if level.depth else "DownBlock2D" for level in levels],
        "layers_per_block": levels[0].blocks,
        "transformer_layers_per_block": [level.depth or 1 for level in levels],
        "cross_attention_dim": shapes[attention][1],
        "use_linear_projection": linear,
        "attention_head_dim": [max(1, level.channels // _HEAD) for level in levels]
        if linear
        else _FIXED_HEADS,
    }
    if "label_emb.0.0.weight" in shapes:
        config["addition_embed_type"] = "text_time"
        config["addition_time_embed_dim"] = _TIME_EMBEDDING
        config["projection_class_embeddings_input_dim"] = shapes["label_emb.0.0.weight"][1]
    return config


def _levels(shapes: Shapes) -> list[_Level]:
    levels: list[_Level] = []
    channels = blocks = depth = 0
    for index in range(1, count_layers(shapes, "input_blocks.")):
        if f"input_blocks.{index}.0.op.weight" in shapes:
            levels.append(_Level(channels, blocks, depth))
            channels = blocks = depth = 0
        else:
            channels = shapes[f"input_blocks.{index}.0.out_layers.3.weight"][0]
            blocks += 1
            depth = count_layers(shapes, f"input_blocks.{index}.1.transformer_blocks.")
    return [*levels, _Level(channels, blocks, depth)]
