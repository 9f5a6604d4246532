"""Lay one [B, C, H, W] tensor over another, for pictures, masks and latents alike."""

from __future__ import annotations

import torch


def laid_over(
    below: torch.Tensor, above: torch.Tensor, left: int, top: int, weight: torch.Tensor | None = None
) -> torch.Tensor:
    """A copy of `below` with `above` mixed in at (left, top), cut at the edges.

    `weight` [B or 1, 1, h, w] has the size of `above`: 1 shows it, 0 hides it. Batches of both repeat to
    the length of `below`.
    """
    result = below.clone()
    height = min(above.shape[-2], below.shape[-2] - top)
    width = min(above.shape[-1], below.shape[-1] - left)
    if height <= 0 or width <= 0:
        return result
    window = result[..., top : top + height, left : left + width]
    over = repeated(above[..., :height, :width], below.shape[0])
    if weight is None:
        window.copy_(over)
        return result
    share = repeated(weight[..., :height, :width], below.shape[0]).to(over)
    window.copy_(over * share + window * (1 - share))
    return result


def repeated(x: torch.Tensor, total: int) -> torch.Tensor:
    """The first `total` items of x [B, ...], which starts over at its end."""
    return x[torch.arange(total) % x.shape[0]]
