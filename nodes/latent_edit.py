"""Latents turned, cut, laid over one another and computed with."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from nodes.compose import laid_over, repeated
from nodes.context import NodeInputError
from nodes.declare import node
from nodes.latent import CELL, SMALLEST_SIDE, like
from nodes.types import Float, Int, Latent, Mask

CATEGORY = "model/latent"
TRANSFORM = f"{CATEGORY}/transform"
ADVANCED = f"{CATEGORY}/advanced"

Offset = Annotated[int, Int(0, 16384, 8)]
Extent = Annotated[int, Int(64, 16384, 8)]
Rotation = Literal["none", "90 degrees", "180 degrees", "270 degrees"]
Flip = Literal["x-axis: vertically", "y-axis: horizontally"]


@node("LatentRotate", display="Rotate Latent", category=TRANSFORM)
def rotate(*, samples: Latent, rotation: Rotation = "none") -> Latent:
    """Clockwise."""
    turns = ("none", "90 degrees", "180 degrees", "270 degrees").index(rotation)
    return samples | {"samples": torch.rot90(samples["samples"], turns, dims=(3, 2))}


@node("LatentFlip", display="Flip Latent", category=TRANSFORM)
def flip(*, samples: Latent, flip_method: Flip = "x-axis: vertically") -> Latent:
    """Upside down, or left to right."""
    axis = 2 if flip_method.startswith("x") else 3
    return samples | {"samples": torch.flip(samples["samples"], dims=(axis,))}


@node("LatentCrop", display="Crop Latent", category=TRANSFORM)
def crop(
    *, samples: Latent, width: Extent = 512, height: Extent = 512, x: Offset = 0, y: Offset = 0
) -> Latent:
    """A rectangle, in pixels; moved inwards where it would leave less than 64 pixels."""
    whole = samples["samples"]
    smallest = SMALLEST_SIDE // CELL
    left = max(0, min(x // CELL, whole.shape[3] - smallest))
    top = max(0, min(y // CELL, whole.shape[2] - smallest))
    return samples | {"samples": whole[:, :, top : top + height // CELL, left : left + width // CELL].clone()}


@node("LatentComposite", display="Latent Composite", category=CATEGORY)
def composite(
    *,
    samples_to: Latent,
    samples_from: Latent,
    x: Offset = 0,
    y: Offset = 0,
    feather: Annotated[int, Int(0, 16384, 8)] = 0,
) -> Latent:
    """Lays one latent over another at x, y, with soft inner edges."""
    below = samples_to["samples"]
    above = _same_channels(samples_from["samples"], below)
    left, top, soft = x // CELL, y // CELL, feather // CELL
    above = above[:, :, : max(0, below.shape[2] - top), : max(0, below.shape[3] - left)]
    edges = (left > 0, left + above.shape[3] < below.shape[3], top > 0, top + above.shape[2] < below.shape[2])
    weight = _soft_edges(above.shape[2], above.shape[3], soft, edges).to(above)
    return samples_to | {"samples": laid_over(below, above, left, top, weight[None, None])}


@node("LatentCompositeMasked", display="Latent Composite Masked", category=CATEGORY)
def composite_masked(
    *,
    destination: Latent,
    source: Latent,
    x: Offset = 0,
    y: Offset = 0,
    resize_source: bool = False,
    mask: Mask | None = None,
) -> Latent:
    """Lays one latent over another at x, y, where the mask is white."""
    below = destination["samples"]
    above = _same_channels(source["samples"], below)
    if resize_source:
        above = torch.nn.functional.interpolate(above, size=below.shape[-2:], mode="bilinear")
    weight = None if mask is None else _mask_at(mask, above)
    return destination | {"samples": laid_over(below, above, x // CELL, y // CELL, weight)}


@node("LatentBlend", display="Latent Blend", category="experimental")
def blend(
    *, samples1: Latent, samples2: Latent, blend_factor: Annotated[float, Float(0, 1, 0.01)] = 0.5
) -> Latent:
    """A mix in which `blend_factor` is the share of the first."""
    one = samples1["samples"]
    two = like(samples2["samples"], one, "bicubic")
    return samples1 | {"samples": one * blend_factor + two * (1 - blend_factor)}


@node("LatentAdd", category=ADVANCED)
def add(*, samples1: Latent, samples2: Latent) -> Latent:
    """The sum of two latents."""
    one = samples1["samples"]
    return samples1 | {"samples": one + _second(samples2, one)}


@node("LatentSubtract", category=ADVANCED)
def subtract(*, samples1: Latent, samples2: Latent) -> Latent:
    """The first latent minus the second."""
    one = samples1["samples"]
    return samples1 | {"samples": one - _second(samples2, one)}


@node("LatentMultiply", category=ADVANCED)
def multiply(*, samples: Latent, multiplier: Annotated[float, Float(-10.0, 10.0, 0.01)] = 1.0) -> Latent:
    """A latent times a number."""
    return samples | {"samples": samples["samples"] * multiplier}


@node("LatentInterpolate", category=ADVANCED)
def interpolate(
    *, samples1: Latent, samples2: Latent, ratio: Annotated[float, Float(0.0, 1.0, 0.01)] = 1.0
) -> Latent:
    """Between two latents, directions and lengths apart, so that the mix keeps its strength."""
    one = samples1["samples"]
    two = _second(samples2, one)
    norm_one, norm_two = one.norm(dim=1, keepdim=True), two.norm(dim=1, keepdim=True)
    mixed = (one / norm_one).nan_to_num() * ratio + (two / norm_two).nan_to_num() * (1 - ratio)
    unit = (mixed / mixed.norm(dim=1, keepdim=True)).nan_to_num()
    return samples1 | {"samples": unit * (norm_one * ratio + norm_two * (1 - ratio))}


@node("LatentConcat", category=ADVANCED)
def concat(
    *, samples1: Latent, samples2: Latent, dim: Literal["x", "-x", "y", "-y", "t", "-t"] = "x"
) -> Latent:
    """Side by side along an axis; a minus sign puts the second first."""
    one = samples1["samples"]
    two = repeated(_same_channels(samples2["samples"], one), one.shape[0])
    pair = (two, one) if dim.startswith("-") else (one, two)
    return samples1 | {"samples": torch.cat(pair, dim=_axis(dim[-1], one))}


@node("LatentCut", category=ADVANCED)
def cut(
    *,
    samples: Latent,
    dim: Literal["x", "y", "t"] = "x",
    index: Annotated[int, Int(-16384, 16384, 1)] = 0,
    amount: Annotated[int, Int(1, 16384, 1)] = 1,
) -> Latent:
    """`amount` cells along an axis; a negative index counts from the end."""
    whole = samples["samples"]
    axis = _axis(dim, whole)
    length = whole.shape[axis]
    start = min(index, length - 1) if index >= 0 else max(length + index, 0)
    return samples | {"samples": whole.narrow(axis, start, min(amount, length - start)).clone()}


def _second(latent: Latent, model: torch.Tensor) -> torch.Tensor:
    return repeated(like(latent["samples"], model, "bilinear"), model.shape[0])


def _same_channels(x: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    if x.shape[1] != model.shape[1]:
        raise NodeInputError(
            f"These latents belong to different models: {x.shape[1]} and {model.shape[1]} channels"
        )
    return x


def _mask_at(mask: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """mask as [B, 1, h, w] at the size of x [B, C, h, w]."""
    planes = mask.reshape(-1, 1, *mask.shape[-2:])
    return torch.nn.functional.interpolate(planes, size=x.shape[-2:], mode="bilinear")


def _axis(name: str, x: torch.Tensor) -> int:
    axis = {"x": 3, "y": 2, "t": 2}[name] if x.dim() == 4 else {"x": 4, "y": 3, "t": 2}[name]
    if name == "t" and x.dim() == 4:
        raise NodeInputError("A picture's latent has no time axis; choose x or y")
    return axis


def _soft_edges(height: int, width: int, soft: int, edges: tuple[bool, bool, bool, bool]) -> torch.Tensor:
    """[height, width] of ones that fall off towards the edges (left, right, top, bottom) that lie inside."""
    left, right, top, bottom = edges
    weight = torch.ones(height, width)
    for step in range(min(soft, height, width)):
        share = (step + 1) / soft
        if left:
            weight[:, step] *= share
        if right:
            weight[:, width - 1 - step] *= share
        if top:
            weight[step] *= share
        if bottom:
            weight[height - 1 - step] *= share
    return weight
