"""`comfy.ldm.modules.diffusionmodules.openaimodel`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    UNetModel,
    Downsample,
    Upsample,
    ResBlock,
    VideoResBlock,
    TimestepEmbedSequential,
    forward_timestep_embed,
    apply_control,
) = named(
    "comfy.ldm.modules.diffusionmodules.openaimodel",
    "UNetModel",
    "Downsample",
    "Upsample",
    "ResBlock",
    "VideoResBlock",
    "TimestepEmbedSequential",
    "forward_timestep_embed",
    "apply_control",
)
