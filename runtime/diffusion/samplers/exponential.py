"""Exponential integrators in half the logarithmic signal-to-noise ratio: SEEDS, Heun, and a two-step form.

`phi_1` and `phi_2` below are the integrals of exp(h - s) and of s * exp(h - s) / h over 0..h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch

from runtime.diffusion.samplers.base import (
    PlainSampling,
    SplitSampling,
    Walk,
    Wish,
    ancestral_levels,
    flow_ancestral_levels,
    plain,
    split,
    with_ratio_levels,
)


def phi_1(h: float) -> float:
    return math.expm1(h)


def phi_2(h: float) -> float:
    return (math.expm1(h) - h) / h


class _Segments:
    """Noise that decays along one step, drawn piece by piece so that every stage sees the same path."""

    def __init__(self, walk: Walk, sigma: float, eta: float) -> None:
        self._walk, self._sigma, self._eta = walk, sigma, eta
        self._sum: torch.Tensor | float = 0.0

    def reach(self, sigma_next: float) -> torch.Tensor | float:
        """The noise that has gathered when the step has come down to `sigma_next`."""
        if self._eta == 0:
            return 0.0
        h = math.log(self._sigma / sigma_next) * self._eta
        fresh = self._walk.noise.brownian(self._sigma, sigma_next)
        self._sum = self._sum * math.exp(-h) + fresh * math.sqrt(-math.expm1(-2 * h))
        self._sigma = sigma_next
        return self._sum * sigma_next


def _two_stages(place: float, eta: float, *, averaged: bool) -> Callable[[Walk], PlainSampling]:
    """`place` says where within a step the second estimate is taken, `averaged` how the two are weighed."""

    @with_ratio_levels
    def run(walk: Walk) -> PlainSampling:
        x = walk.x
        for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
            denoised = yield Wish(x, sigma, step)
            if sigma_next == 0:
                x = denoised
                continue
            h = math.log(sigma / sigma_next)
            noise, whole = _Segments(walk, sigma, eta), h * (1 + eta)
            middle = sigma_next if place == 1 else sigma * math.exp(-place * h)
            noise_there = noise.reach(middle)
            there = x * math.exp(-place * whole) - denoised * phi_1(-place * whole) + noise_there
            later = yield Wish(there, middle, step)
            second = (phi_1(-whole) / 2 if averaged else phi_2(-whole)) / place
            x = x * math.exp(-whole) - denoised * (phi_1(-whole) - second) - later * second
            x = x + (noise_there if place == 1 else noise.reach(sigma_next))
        return x

    return run


seeds_2 = plain("seeds_2")(_two_stages(0.5, 1.0, averaged=True))
exp_heun_2_x0 = plain("exp_heun_2_x0")(_two_stages(1.0, 0.0, averaged=False))
exp_heun_2_x0_sde = plain("exp_heun_2_x0_sde")(_two_stages(1.0, 1.0, averaged=False))


@plain("seeds_3")
@with_ratio_levels
def seeds_3(walk: Walk) -> PlainSampling:
    """SEEDS-3 (arXiv 2305.14267): estimates at the start and at one and two thirds of a step."""
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        h = math.log(sigma / sigma_next)
        noise, whole = _Segments(walk, sigma, 1.0), 2 * h
        third, two_thirds = sigma * math.exp(-h / 3), sigma * math.exp(-2 * h / 3)
        there = x * math.exp(-whole / 3) - denoised * phi_1(-whole / 3) + noise.reach(third)
        second = yield Wish(there, third, step)
        part = 2 * whole / 3
        weight = 2 * phi_2(-part)
        there = x * math.exp(-part) - denoised * (phi_1(-part) - weight) - second * weight
        third_answer = yield Wish(there + noise.reach(two_thirds), two_thirds, step)
        weight = phi_2(-whole) * 3 / 2
        x = x * math.exp(-whole) - denoised * (phi_1(-whole) - weight) - third_answer * weight
        x = x + noise.reach(sigma_next)
    return x


@plain("res_multistep")
def res_multistep(walk: Walk) -> PlainSampling:
    return (yield from _refined(walk, ancestral=False))


@plain("res_multistep_ancestral")
def res_multistep_ancestral(walk: Walk) -> PlainSampling:
    return (yield from _refined(walk, ancestral=True))


def _refined(walk: Walk, *, ancestral: bool) -> PlainSampling:
    """The refined exponential solver (arXiv 2308.02157) with one earlier estimate, at second order."""
    x, before, h_before = walk.x, None, 0.0
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        down, keep, noise = _levels(walk, sigma, sigma_next, ancestral)
        h = math.log(sigma / down)
        x = x * math.exp(-h) - denoised * phi_1(-h)
        if before is not None:
            x = x + (before - denoised) * (phi_2(-h) * h / h_before)
        if ancestral:
            x = x * keep + walk.noise.normal() * noise
        before, h_before = denoised, h
    return x


@split("res_multistep_cfg_pp")
def res_multistep_cfg_pp(walk: Walk) -> SplitSampling:
    return (yield from _refined_along_unguided(walk, ancestral=False))


@split("res_multistep_ancestral_cfg_pp")
def res_multistep_ancestral_cfg_pp(walk: Walk) -> SplitSampling:
    return (yield from _refined_along_unguided(walk, ancestral=True))


def _refined_along_unguided(walk: Walk, *, ancestral: bool) -> SplitSampling:
    x, before, h_before = walk.x, None, 0.0
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised, unguided = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        down, keep, noise = _levels(walk, sigma, sigma_next, ancestral)
        h = math.log(sigma / down)
        if before is None:
            x = denoised + (x - unguided) * math.exp(-h)
        else:
            x = (x + denoised - unguided) * math.exp(-h) - unguided * phi_1(-h)
            x = x + (before - unguided) * (phi_2(-h) * h / h_before)
        if ancestral:
            x = x * keep + walk.noise.normal() * noise
        before, h_before = unguided, h
    return x


def _levels(walk: Walk, sigma: float, sigma_next: float, ancestral: bool) -> tuple[float, float, float]:
    if not ancestral:
        return sigma_next, 1.0, 0.0
    if walk.is_flow:
        return flow_ancestral_levels(sigma, sigma_next)
    down, up = ancestral_levels(sigma, sigma_next)
    return down, 1.0, up
