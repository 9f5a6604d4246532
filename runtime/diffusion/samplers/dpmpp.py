"""DPM-Solver++ (arXiv 2211.01095) without a stochastic differential equation: 2M, and 2S with added noise."""

from __future__ import annotations

import math
from itertools import pairwise

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


@plain("dpmpp_2m")
def dpmpp_2m(walk: Walk) -> PlainSampling:
    x, before, h_before = walk.x, None, 0.0
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        h = math.log(sigma / sigma_next)
        ahead = denoised
        if before is not None:
            ahead = denoised + (denoised - before) * (h / (2 * h_before))
        x = x * (sigma_next / sigma) - ahead * math.expm1(-h)
        before, h_before = denoised, h
    return x


@split("dpmpp_2m_cfg_pp")
def dpmpp_2m_cfg_pp(walk: Walk) -> SplitSampling:
    x, before, h_before = walk.x, None, 0.0
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised, unguided = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        h = math.log(sigma / sigma_next)
        x = denoised + (x - unguided) * math.exp(-h)
        if before is not None:
            x = x - (denoised - before) * (math.expm1(-h) * h / (2 * h_before))
        before, h_before = unguided, h
    return x


@plain("dpmpp_2s_ancestral")
def dpmpp_2s_ancestral(walk: Walk) -> PlainSampling:
    """A midpoint step in half the logarithmic signal-to-noise ratio, then fresh noise."""
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        if walk.is_flow:
            down, keep, noise = flow_ancestral_levels(sigma, sigma_next)
            middle = _flow_middle(sigma, down)
        else:
            (down, noise), keep = ancestral_levels(sigma, sigma_next), 1.0
            middle = math.sqrt(sigma * down)
        halfway = denoised + (x - denoised) * (middle / sigma)
        denoised = yield Wish(halfway, middle, step)
        x = (denoised + (x - denoised) * (down / sigma)) * keep + walk.noise.normal() * noise
    return x


@split("dpmpp_2s_ancestral_cfg_pp")
@with_ratio_levels
def dpmpp_2s_ancestral_cfg_pp(walk: Walk) -> SplitSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised, unguided = yield Wish(x, sigma, step)
        down, up = ancestral_levels(sigma, sigma_next)
        if down == 0:
            x = denoised
            continue
        middle = math.sqrt(sigma * down)
        halfway = denoised + (x - unguided) * (middle / sigma)
        denoised_there, _ = yield Wish(halfway, middle, step)
        x = denoised_there + (x + denoised - unguided - denoised_there) * (down / sigma)
        x = x + walk.noise.normal() * up
    return x


def _flow_middle(sigma: float, down: float) -> float:
    """The level halfway between two in the logarithm of (1 - sigma) / sigma."""
    if sigma >= 1:
        return 0.9999
    odds = math.sqrt((1 - sigma) / sigma * ((1 - down) / down))
    return 1 / (1 + odds)
