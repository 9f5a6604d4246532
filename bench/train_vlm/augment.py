"""Pictures as people bring them: moved, turned, mirrored, on coloured paper, faint, blurred and noisy.

Hues stay as they are, because the colour is part of many names.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.train_vlm.pictures import PICTURE

UNTOUCHED = 0.2  # the share of pictures that stay as they are
TURN, SHIFT, STRETCH = 0.22, 0.12, 0.2  # radians, half pictures, logarithm of the scale
PAPER = 0.3  # the share on coloured paper


def augment(pictures: Tensor, generator: torch.Generator) -> Tensor:
    """[B, 3, H, W] of uint8 to [B, 3, PICTURE, PICTURE] in [-1, 1]."""
    whole = pictures.float() / 255
    changed = _recolour(_move(whole, generator), generator)
    changed = F.interpolate(changed, size=PICTURE, mode="area")
    changed = _blur(changed, generator)
    noise = torch.randn(changed.shape, generator=generator)
    changed = (changed + noise * 0.05 * _uniform(changed, generator).square()).clamp(0, 1)
    untouched = _uniform(changed, generator) < UNTOUCHED
    return torch.where(untouched, F.interpolate(whole, size=PICTURE, mode="area"), changed) * 2 - 1


def _move(pictures: Tensor, generator: torch.Generator) -> Tensor:
    count = len(pictures)
    angle, stretch, right, down = (torch.rand(4, count, generator=generator) * 2 - 1).unbind()
    mirror = torch.randint(2, (count,), generator=generator) * 2 - 1
    angle, size = angle * TURN, torch.exp(stretch * STRETCH)
    rows = [
        torch.stack([mirror * size * angle.cos(), -size * angle.sin(), right * SHIFT], 1),
        torch.stack([mirror * size * angle.sin(), size * angle.cos(), down * SHIFT], 1),
    ]
    grid = F.affine_grid(torch.stack(rows, 1), list(pictures.shape), align_corners=False)
    # what comes in from outside is white
    return 1 - F.grid_sample(1 - pictures, grid, align_corners=False)


def _recolour(pictures: Tensor, generator: torch.Generator) -> Tensor:
    """Other contrast and light, and pale paper of any colour below the picture."""
    contrast = torch.exp(0.25 * (_uniform(pictures, generator) * 2 - 1))
    light = 0.12 * (_uniform(pictures, generator) * 2 - 1)
    changed = (1 - (1 - pictures) * contrast + light).clamp(0, 1)
    paper = 1 - 0.35 * torch.rand(len(pictures), 3, 1, 1, generator=generator)
    return torch.where(_uniform(pictures, generator) < PAPER, changed * paper, changed)


def _blur(pictures: Tensor, generator: torch.Generator) -> Tensor:
    """A third of them, as the mean of 3 x 3 pixels, more or less."""
    soft = F.avg_pool2d(F.pad(pictures, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    share = (_uniform(pictures, generator) * 3 - 2).clamp(0, 1)
    return pictures + (soft - pictures) * share


def _uniform(pictures: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(len(pictures), 1, 1, 1, generator=generator)
