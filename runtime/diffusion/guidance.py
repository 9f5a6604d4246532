"""Generators around a sampler: guidance by a negative, regional conditionings, inpainting, watching.

Each turns one wish into other wishes and several answers into one. None knows a network or another request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import torch

from runtime.diffusion.cond import Region
from runtime.diffusion.families.base import Cond
from runtime.diffusion.samplers.base import Answer, Sampling, Wish


@dataclass(frozen=True, slots=True, eq=False)
class Eval:
    """A clean estimate is wanted of x [B, C, h, w] at a level, with one conditioning an image."""

    x: torch.Tensor
    sigma: float
    conds: tuple[Cond, ...]


Guided = Generator[list[Eval], "list[torch.Tensor]", "torch.Tensor"]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What the estimate is pulled towards and away from, and how far."""

    positive: tuple[Region, ...]
    negative: tuple[Region, ...]
    scale: float

    @property
    def needs_negative(self) -> bool:
        return not math.isclose(self.scale, 1.0)


def guided(sampling: Sampling, sides: Sides, *, keeps_unguided: bool) -> Guided:
    """Classifier-free guidance. A scale of 1 asks for the positive only, unless the sampler wants both."""
    has_negative = keeps_unguided or sides.needs_negative
    try:
        wish = next(sampling)
        while True:
            positive = _active(sides.positive, wish.sigma)
            negative = _active(sides.negative, wish.sigma) if has_negative else []
            answers = yield [_eval(region, wish) for region in (*positive, *negative)]
            wanted = _merged(positive, answers[: len(positive)], wish.x)
            unguided = _merged(negative, answers[len(positive) :], wish.x) if has_negative else None
            if unguided is not None and sides.needs_negative:
                wanted = unguided + (wanted - unguided) * sides.scale
            wish = sampling.send(Answer(wanted, unguided))
    except StopIteration as end:
        x: torch.Tensor = end.value
        return x
    finally:
        sampling.close()


def _active(regions: Sequence[Region], sigma: float) -> list[Region]:
    return [region for region in regions if region.levels.contain(sigma)]


def _eval(region: Region, wish: Wish) -> Eval:
    x = region.box.of(wish.x) if region.box else wish.x
    return Eval(x, wish.sigma, region.conds_at(wish.sigma))


def _merged(regions: Sequence[Region], answers: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The mean of the answers by weight; zero where nobody answers."""
    if len(regions) == 1 and regions[0].box is None and isinstance(regions[0].weight, float):
        return answers[0] if regions[0].weight != 0 else torch.zeros_like(x)
    total = torch.zeros_like(x)
    weight = torch.full_like(x, 1e-37)
    for region, answer in zip(regions, answers, strict=True):
        place_total = region.box.of(total) if region.box else total
        place_weight = region.box.of(weight) if region.box else weight
        place_total += answer * region.weight
        place_weight += region.weight
    return total / weight


@dataclass(frozen=True, slots=True, eq=False)
class Repaint:
    """`mask` [1 or B, 1, h, w] is 1 where to paint anew; `noised` gives the original at a level."""

    mask: torch.Tensor
    latent: torch.Tensor
    noised: Callable[[float], torch.Tensor]


def inpainted(sampling: Sampling, repaint: Repaint) -> Sampling:
    """Outside of the mask the network sees the original with noise, and the sampler its clean self."""
    mask, keep = repaint.mask, 1 - repaint.mask
    try:
        wish = next(sampling)
        while True:
            x = wish.x * mask + repaint.noised(wish.sigma) * keep
            answer = yield wish._replace(x=x)
            denoised = answer.denoised * mask + repaint.latent * keep
            wish = sampling.send(answer._replace(denoised=denoised))
    except StopIteration as end:
        result: torch.Tensor = end.value
        return result
    finally:
        sampling.close()


def watched(sampling: Sampling, watch: Callable[[int, torch.Tensor], None]) -> Sampling:
    """Tell how many steps have had an answer, and the newest clean estimate."""
    try:
        wish = next(sampling)
        while True:
            answer = yield wish
            watch(wish.step + 1, answer.denoised)
            wish = sampling.send(answer)
    except StopIteration as end:
        result: torch.Tensor = end.value
        return result
    finally:
        sampling.close()
