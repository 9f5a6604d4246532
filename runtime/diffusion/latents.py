"""Approximate colours of a latent, fitted to an autoencoder instead of being listed for each.

The fit decodes random latents of the network's scale once and solves a least-squares problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from runtime.diffusion.families.base import Autoencoder, LatentFormat

_GRID = 16
_SAMPLES = 4


@dataclass(frozen=True, slots=True, eq=False)
class RgbFit:
    """`latent @ rgb + bias` is a colour in -1..1 for each cell; rgb [C, 3], bias [3]."""

    rgb: torch.Tensor
    bias: torch.Tensor


def fit_rgb(autoencoder: Autoencoder, latent_format: LatentFormat, device: str) -> RgbFit:
    """Neighbouring cells are alike in half of the samples, as they are in a picture."""
    generator = torch.Generator().manual_seed(0)
    channels = latent_format.channels
    rough = torch.randn(_SAMPLES, channels, _GRID, _GRID, generator=generator)
    coarse = torch.randn(_SAMPLES, channels, _GRID // 4, _GRID // 4, generator=generator)
    latents = torch.cat([rough, F.interpolate(coarse, size=(_GRID, _GRID), mode="bilinear")])
    pictures = autoencoder.decode(latent_format.from_network(latents.to(device))).float().cpu()
    cells = F.adaptive_avg_pool2d(pictures, (_GRID, _GRID))
    # [N, C, h, w] -> [N h w, C + 1], the last column for the bias
    inputs = latents.movedim(1, -1).reshape(-1, channels)
    inputs = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
    solution = torch.linalg.lstsq(inputs, cells.movedim(1, -1).reshape(-1, 3)).solution
    return RgbFit(rgb=solution[:-1].to(device), bias=solution[-1].to(device))
