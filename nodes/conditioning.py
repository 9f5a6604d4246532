"""Conditionings mixed, joined, and limited to a part of the picture or of the sampling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.encode_text import with_values
from nodes.types import Conditioning, Float, Int, Mask

CATEGORY = "model/conditioning/transform"
# Areas are counted in cells of eight pixels.
CELL = 8

Fraction = Annotated[float, Float(0, 1.0, 0.01)]
Strength = Annotated[float, Float(0.0, 10.0, 0.01)]
Extent = Annotated[int, Int(64, 16384, 8)]
Offset = Annotated[int, Int(0, 16384, 8)]
Percent = Annotated[float, Float(0.0, 1.0, 0.001)]


@node("ConditioningCombine", display="Conditioning (Combine)", category=CATEGORY)
def combine(*, conditioning_1: Conditioning, conditioning_2: Conditioning) -> Conditioning:
    """Both guide the sampler, each by its own pass; their answers are averaged."""
    return [*conditioning_1, *conditioning_2]


@node("ConditioningAverage", display="Conditioning (Average)", category=CATEGORY)
def average(
    *,
    conditioning_to: Conditioning,
    conditioning_from: Conditioning,
    conditioning_to_strength: Annotated[float, Float(0.0, 1.0, 0.01)] = 1.0,
) -> Conditioning:
    """One conditioning between two: strength 1 is `conditioning_to`."""
    source, source_entry = _first(conditioning_from, "conditioning_from")
    share = conditioning_to_strength

    def mixed(to: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return to * share + other * (1 - share)

    result = []
    for tokens, entry in conditioning_to:
        averaged = dict(entry)
        pooled, other_pooled = entry.get("pooled_output"), source_entry.get("pooled_output")
        if pooled is not None and other_pooled is not None:
            averaged["pooled_output"] = mixed(pooled, other_pooled)
        elif other_pooled is not None:
            averaged["pooled_output"] = other_pooled
        result.append([mixed(tokens, _of_length(source, tokens.shape[1])), averaged])
    return result


@node("ConditioningConcat", display="Conditioning (Concat)", category=CATEGORY)
def concat(*, conditioning_to: Conditioning, conditioning_from: Conditioning) -> Conditioning:
    """The tokens of both, one after the other, for one pass."""
    source, _ = _first(conditioning_from, "conditioning_from")
    return [[torch.cat((tokens, source), dim=1), dict(entry)] for tokens, entry in conditioning_to]


@node("ConditioningMultiply", display="Conditioning (Multiply)", category=CATEGORY)
def multiply(
    *, conditioning: Conditioning, multiplier: Annotated[float, Float(-100.0, 100.0, 0.01)] = 1.0
) -> Conditioning:
    """Tokens and pooled features times a number."""
    return _scaled(conditioning, multiplier)


@node("ConditioningZeroOut", display="Conditioning Zero Out", category=CATEGORY)
def zero_out(*, conditioning: Conditioning) -> Conditioning:
    """Zeros in the shape of a conditioning: what some networks learned as "no text"."""
    return _scaled(conditioning, 0.0)


@node("ConditioningSetArea", display="Conditioning (Set Area)", category=CATEGORY)
def set_area(
    *,
    conditioning: Conditioning,
    width: Extent = 64,
    height: Extent = 64,
    x: Offset = 0,
    y: Offset = 0,
    strength: Strength = 1.0,
) -> Conditioning:
    """Guides only a rectangle, in pixels."""
    area = (height // CELL, width // CELL, y // CELL, x // CELL)
    return with_values(conditioning, {"area": area, "strength": strength, "set_area_to_bounds": False})


@node("ConditioningSetAreaPercentage", display="Conditioning (Set Area with Percentage)", category=CATEGORY)
def set_area_percentage(
    *,
    conditioning: Conditioning,
    width: Fraction = 1.0,
    height: Fraction = 1.0,
    x: Fraction = 0,
    y: Fraction = 0,
    strength: Strength = 1.0,
) -> Conditioning:
    """Guides only a rectangle, in fractions of the picture."""
    area = ("percentage", height, width, y, x)
    return with_values(conditioning, {"area": area, "strength": strength, "set_area_to_bounds": False})


@node("ConditioningSetAreaStrength", display="Conditioning (Set Area Strength)", category=CATEGORY)
def set_area_strength(*, conditioning: Conditioning, strength: Strength = 1.0) -> Conditioning:
    """The weight of this conditioning beside the others."""
    return with_values(conditioning, {"strength": strength})


@node("ConditioningSetMask", display="Conditioning (Set Mask)", category=CATEGORY)
def set_mask(
    *,
    conditioning: Conditioning,
    mask: Mask,
    strength: Strength = 1.0,
    set_cond_area: Literal["default", "mask bounds"] = "default",
) -> Conditioning:
    """Guides where the mask is white; "mask bounds" also leaves the rest out of the pass."""
    values = {
        "mask": mask if mask.dim() >= 3 else mask[None],
        "set_area_to_bounds": set_cond_area != "default",
        "mask_strength": strength,
    }
    return with_values(conditioning, values)


@node("ConditioningSetTimestepRange", category=CATEGORY)
def set_timestep_range(
    *, conditioning: Conditioning, start: Percent = 0.0, end: Percent = 1.0
) -> Conditioning:
    """Guides only between two points of the sampling: 0 is its start, 1 its end."""
    return with_values(conditioning, {"start_percent": start, "end_percent": end})


def _first(conditioning: Conditioning, name: str) -> list[Any]:
    if not conditioning:
        raise NodeInputError(f"{name} is empty: nothing can be taken from it")
    return conditioning[0]


def _of_length(tokens: torch.Tensor, length: int) -> torch.Tensor:
    """tokens [1, L, D] cut, or filled with zeros, to [1, length, D]."""
    missing = length - tokens.shape[1]
    return torch.nn.functional.pad(tokens[:, :length], (0, 0, 0, max(0, missing)))


def _scaled(conditioning: Conditioning, factor: float) -> Conditioning:
    def entry_scaled(entry: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        pooled = entry.get("pooled_output")
        return dict(entry) if pooled is None else entry | {"pooled_output": pooled * factor}

    return [[tokens * factor, entry_scaled(entry)] for tokens, entry in conditioning]
