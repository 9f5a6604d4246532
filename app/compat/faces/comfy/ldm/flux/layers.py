"""`comfy.ldm.flux.layers`: Flux's embedding of a time in 0..1; its blocks are names."""

from __future__ import annotations

import torch

from app.compat.faces.comfy.ldm.modules.diffusionmodules import util
from app.compat.named import named

DoubleStreamBlock, SingleStreamBlock, EmbedND, MLPEmbedder, LastLayer, SelfAttention = named(
    "comfy.ldm.flux.layers",
    "DoubleStreamBlock",
    "SingleStreamBlock",
    "EmbedND",
    "MLPEmbedder",
    "LastLayer",
    "SelfAttention",
)


def timestep_embedding(
    t: torch.Tensor, dim: int, max_period: int = 10000, time_factor: float = 1000.0
) -> torch.Tensor:
    return util.timestep_embedding(time_factor * t, dim, max_period).to(t)
