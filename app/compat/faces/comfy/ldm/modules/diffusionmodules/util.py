"""`comfy.ldm.modules.diffusionmodules.util`: sines and cosines of a timestep."""

from __future__ import annotations

import math

import torch


def timestep_embedding(
    timesteps: torch.Tensor, dim: int, max_period: int = 10000, repeat_only: bool = False
) -> torch.Tensor:
    """[B] -> [B, dim]: cosines, then sines, from frequency 1 down to 1 / max_period."""
    if repeat_only:
        return timesteps[:, None].expand(-1, dim)
    half = dim // 2
    steps = torch.arange(half, dtype=torch.float32, device=timesteps.device)
    angles = timesteps[:, None].float() * torch.exp(-math.log(max_period) * steps / half)
    embedding = torch.cat([angles.cos(), angles.sin()], dim=-1)
    return torch.nn.functional.pad(embedding, (0, 1)) if dim % 2 else embedding


def zero_module(module: torch.nn.Module) -> torch.nn.Module:
    """The same module, with all of its weights zero."""
    for weight in module.parameters():
        weight.detach().zero_()
    return module
