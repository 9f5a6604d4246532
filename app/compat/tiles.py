"""Any function on overlapping tiles of a tensor, blended where they meet. It knows no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch


def tile_starts(size: int, tile: int, overlap: int) -> list[int]:
    """Where tiles begin, so that they cover `size`; the last one ends with it."""
    if size <= tile:
        return [0]
    stride = max(1, tile - overlap)
    return [*range(0, size - tile, stride), size - tile]


def tiled(
    x: torch.Tensor,
    function: Callable[[torch.Tensor], torch.Tensor],
    tile: Sequence[int],
    overlap: int,
    factor: float,
    out_channels: int,
    step: Callable[[], None],
) -> torch.Tensor:
    """x [B, C, *sizes] -> [B, out_channels, *(size * factor)]; `step` is called after each tile.

    A tile's weight falls off linearly within the overlap, so that neighbours blend into each other.
    """
    sizes = x.shape[-len(tile) :]
    out_sizes = [round(size * factor) for size in sizes]
    result = x.new_zeros((x.shape[0], out_channels, *out_sizes), dtype=torch.float32, device="cpu")
    weights = torch.zeros((1, 1, *out_sizes))
    places = [tile_starts(size, length, overlap) for size, length in zip(sizes, tile)]
    for starts in product(*places):
        cut: tuple[Any, ...] = tuple(
            slice(start, min(start + length, size)) for start, length, size in zip(starts, tile, sizes)
        )
        answer = function(x[(slice(None), slice(None), *cut)]).float().cpu()
        at: tuple[Any, ...] = tuple(
            slice(start, start + length)
            for start, length in zip((round(start * factor) for start in starts), answer.shape[-len(tile) :])
        )
        weight = _weight(answer.shape[-len(tile) :], round(overlap * factor))
        result[(slice(None), slice(None), *at)] += answer * weight
        weights[(slice(None), slice(None), *at)] += weight
        step()
    return result / weights


def _weight(sizes: Sequence[int], feather: int) -> torch.Tensor:
    weight = torch.ones((1, 1, *sizes))
    for axis, size in enumerate(sizes):
        distance = torch.minimum(torch.arange(size), torch.arange(size).flip(0)) + 1
        ramp = (distance / (feather + 1)).clamp(max=1)
        weight = weight * ramp.reshape([-1 if i == axis else 1 for i in range(len(sizes))])
    return weight
