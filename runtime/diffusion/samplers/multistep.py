"""Samplers that look back at earlier slopes: Adams-Bashforth in several spacings, and gradient estimation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import torch

from runtime.diffusion.samplers.base import PlainSampling, SplitSampling, Walk, Wish, plain, split
from runtime.diffusion.samplers.quadrature import integral, lagrange

# the four-step formulas for equal steps; the present slope first
_EQUAL_STEP_WEIGHTS = (
    (1.0,),
    (3 / 2, -1 / 2),
    (23 / 12, -16 / 12, 5 / 12),
    (55 / 24, -59 / 24, 37 / 24, -9 / 24),
)


@plain("lms", "ipndm_v")
def lms(walk: Walk) -> PlainSampling:
    """Adams-Bashforth of order four for the steps as they are. The two names have the same weights."""
    x = walk.x
    slopes: list[torch.Tensor] = []
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        slopes = [(x - denoised) / sigma, *slopes[:3]]
        if sigma_next == 0:
            x = denoised
            continue
        places = [walk.sigmas[step - back] for back in range(len(slopes))]
        weights = [
            integral(partial(lagrange, places, place), sigma, sigma_next) for place in range(len(places))
        ]
        x = x + _combined(weights, slopes)
    return x


@plain("ipndm")
def ipndm(walk: Walk) -> PlainSampling:
    x = walk.x
    slopes: list[torch.Tensor] = []
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        slopes = [(x - denoised) / sigma, *slopes[:3]]
        if sigma_next == 0:
            x = denoised
        else:
            x = x + _combined(_EQUAL_STEP_WEIGHTS[len(slopes) - 1], slopes) * (sigma_next - sigma)
    return x


@plain("deis")
def deis(walk: Walk) -> PlainSampling:
    """tAB-DEIS of order three (arXiv 2204.13902): slopes extrapolated in the time of a variance-preserving

    process that spans the walk.
    """
    x = walk.x
    slopes: list[torch.Tensor] = []
    clock = _PreservingClock(walk.sigmas)
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        slopes = [(x - denoised) / sigma, *slopes[:2]]
        if sigma_next == 0:
            x = denoised
            continue
        places = [clock.time(walk.sigmas[step - back]) for back in range(len(slopes))]
        x = x + _combined(_deis_weights(clock, places, clock.time(sigma_next)), slopes)
    return x


@plain("gradient_estimation")
def gradient_estimation(walk: Walk) -> PlainSampling:
    """Euler with the change of the slope counted once more (arXiv 2306.04848, gamma 2)."""
    x, before = walk.x, None
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        slope = (x - denoised) / sigma
        if sigma_next == 0:
            x = denoised
        else:
            change = 0.0 if before is None else slope - before
            x = x + (slope + change) * (sigma_next - sigma)
        before = slope
    return x


@split("gradient_estimation_cfg_pp")
def gradient_estimation_cfg_pp(walk: Walk) -> SplitSampling:
    x, before = walk.x, None
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised, unguided = yield Wish(x, sigma, step)
        slope = (x - unguided) / sigma
        x = denoised + slope * sigma_next
        if before is not None and sigma_next > 0:
            x = x + (slope - before) * (sigma_next - sigma)
        before = slope
    return x


def _combined(weights: Sequence[float], slopes: Sequence[torch.Tensor]) -> torch.Tensor:
    total = slopes[0] * weights[0]
    for weight, slope in zip(weights[1:], slopes[1:], strict=True):
        total = total + slope * weight
    return total


def _deis_weights(clock: _PreservingClock, places: Sequence[float], end: float) -> list[float]:
    def integrand(place: int, time: float) -> float:
        return lagrange(places, place, time) * clock.speed(time)

    return [integral(partial(integrand, place), places[0], end) for place in range(len(places))]


class _PreservingClock:
    """Time 0.001..1 of the process sigma(t)^2 = exp(a t^2 / 2 + b t) - 1 that spans a walk."""

    FIRST = 1e-3

    def __init__(self, sigmas: Sequence[float]) -> None:
        high = math.log1p(sigmas[0] ** 2)
        low = math.log1p(min(sigma for sigma in sigmas if sigma > 0) ** 2)
        self.a = 2 * (low / self.FIRST - high) / (self.FIRST - 1)
        self.b = high - self.a / 2
        if self.a <= 0:  # a short walk over low levels: time would turn back, so take the usual process
            self.a, self.b = 19.9, 0.1

    def time(self, sigma: float) -> float:
        root = math.sqrt(self.b**2 + 2 * self.a * math.log1p(sigma**2))
        return (root - self.b) / self.a

    def speed(self, time: float) -> float:
        """The change of sigma with time."""
        grown = math.exp(self.a * time**2 / 2 + self.b * time)
        return (self.a * time + self.b) * grown / (2 * math.sqrt(grown - 1))
