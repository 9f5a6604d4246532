"""Samplers of first and second order along the slope (x - denoised) / sigma, and their noisy kin."""

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


@plain("euler")
def euler(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        x = x + (x - denoised) * ((sigma_next - sigma) / sigma)
    return x


plain("ddim", fresh_inpaint_noise=True)(euler)


@plain("heun")
def heun(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        slope = (x - denoised) / sigma
        ahead = x + slope * (sigma_next - sigma)
        if sigma_next > 0:
            denoised = yield Wish(ahead, sigma_next, step)
            slope = (slope + (ahead - denoised) / sigma_next) / 2
            ahead = x + slope * (sigma_next - sigma)
        x = ahead
    return x


@plain("heunpp2")
def heunpp2(walk: Walk) -> PlainSampling:
    """Slopes at up to three levels, the later ones weighted by their level against the first of the walk."""
    x, sigmas = walk.x, walk.sigmas
    for step, (sigma, sigma_next) in enumerate(pairwise(sigmas)):
        levels = [s for s in sigmas[step : step + 3] if s != sigmas[-1]]
        slopes, ahead = [], x
        for place, level in enumerate(levels):
            denoised = yield Wish(ahead, level, step)
            slopes.append((ahead - denoised) / level)
            if place + 1 < len(levels):
                ahead = ahead + slopes[-1] * (levels[place + 1] - level)
        weights = [level / (len(levels) * sigmas[0]) for level in levels[1:]]
        slope = slopes[0] * (1 - sum(weights))
        for weight, later in zip(weights, slopes[1:], strict=True):
            slope = slope + later * weight
        x = x + slope * (sigma_next - sigma)
    return x


@plain("euler_ancestral")
def euler_ancestral(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
        elif walk.is_flow:
            down, keep, noise = flow_ancestral_levels(sigma, sigma_next)
            ahead = denoised + (x - denoised) * (down / sigma)
            x = ahead * keep + walk.noise.normal() * noise
        else:
            down, up = ancestral_levels(sigma, sigma_next)
            x = denoised + (x - denoised) * (down / sigma) + walk.noise.normal() * up
    return x


@plain("ddpm")
@with_ratio_levels
def ddpm(walk: Walk) -> PlainSampling:
    """The posterior step of DDPM. Its mean and variance are those of an ancestral Euler step."""
    return (yield from euler_ancestral(walk))


@plain("lcm")
def lcm(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        x = yield Wish(x, sigma, step)
        if sigma_next > 0:
            x = x * (1 - sigma_next if walk.is_flow else 1) + walk.noise.normal() * sigma_next
    return x


@plain("dpm_2", skips_penultimate=True)
def dpm_2(walk: Walk) -> PlainSampling:
    """The midpoint rule, in the logarithm of the level."""
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        x = yield from _midpoint(x, sigma, sigma_next, step)
    return x


@plain("dpm_2_ancestral", skips_penultimate=True)
def dpm_2_ancestral(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        if walk.is_flow:
            down, keep, noise = flow_ancestral_levels(sigma, sigma_next)
        else:
            down, noise = ancestral_levels(sigma, sigma_next)
            keep = 1.0
        x = yield from _midpoint(x, sigma, down, step)
        if sigma_next > 0:
            x = x * keep + walk.noise.normal() * noise
    return x


def _midpoint(x: torch.Tensor, sigma: float, sigma_next: float, step: int) -> PlainSampling:
    denoised = yield Wish(x, sigma, step)
    slope = (x - denoised) / sigma
    if sigma_next > 0:
        middle = math.sqrt(sigma * sigma_next)
        halfway = x + slope * (middle - sigma)
        denoised = yield Wish(halfway, middle, step)
        slope = (halfway - denoised) / middle
    return x + slope * (sigma_next - sigma)


def _euler_along_unguided(ancestral: bool) -> Callable[[Walk], SplitSampling]:
    def run(walk: Walk) -> SplitSampling:
        x = walk.x
        for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
            denoised, unguided = yield Wish(x, sigma, step)
            keep, keep_next = (1 - sigma, 1 - sigma_next) if walk.is_flow else (1.0, 1.0)
            down, up = sigma_next, 0.0
            if ancestral:
                ratio = sigma_next * keep / (sigma * keep_next)
                up = sigma_next * math.sqrt(max(1 - ratio * ratio, 0.0))
                down = math.sqrt(sigma_next**2 - up**2)
            x = denoised * keep_next + (x - unguided * keep) * (down / sigma)
            if up > 0:
                x = x + walk.noise.normal() * up
        return x

    return run


euler_cfg_pp = split("euler_cfg_pp")(_euler_along_unguided(ancestral=False))
euler_ancestral_cfg_pp = split("euler_ancestral_cfg_pp")(_euler_along_unguided(ancestral=True))
