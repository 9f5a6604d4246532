"""Solvers of the stochastic differential equation: DPM-Solver++ SDE in three forms, and ER-SDE.

Their noise is one Brownian path a request, so more steps refine the same picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch

from runtime.diffusion.samplers.base import (
    PlainSampling,
    Walk,
    Wish,
    ancestral_levels,
    plain,
    with_ratio_levels,
)


@plain("dpmpp_sde", "dpmpp_sde_gpu")
@with_ratio_levels
def dpmpp_sde(walk: Walk) -> PlainSampling:
    x = walk.x
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        middle = math.sqrt(sigma * sigma_next)
        down, up = ancestral_levels(sigma, middle)
        halfway = denoised + (x - denoised) * (down / sigma) + walk.noise.brownian(sigma, middle) * up
        denoised = yield Wish(halfway, middle, step)
        down, up = ancestral_levels(sigma, sigma_next)
        x = denoised + (x - denoised) * (down / sigma) + walk.noise.brownian(sigma, sigma_next) * up
    return x


def _dpmpp_2m_sde(slope_weight: Callable[[float], float]) -> Callable[[Walk], PlainSampling]:
    @with_ratio_levels
    def run(walk: Walk) -> PlainSampling:
        x, before, h_before = walk.x, None, 0.0
        for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
            denoised = yield Wish(x, sigma, step)
            if sigma_next == 0:
                x = denoised
                continue
            h = math.log(sigma / sigma_next)
            x = x * (sigma_next / sigma * math.exp(-h)) - denoised * math.expm1(-2 * h)
            if before is not None:
                x = x + (denoised - before) * (slope_weight(2 * h) * h / h_before)
            x = x + walk.noise.brownian(sigma, sigma_next) * (sigma_next * math.sqrt(-math.expm1(-2 * h)))
            before, h_before = denoised, h
        return x

    return run


def _midpoint_weight(h: float) -> float:
    return -0.5 * math.expm1(-h)


def _heun_weight(h: float) -> float:
    return 1 + math.expm1(-h) / h


dpmpp_2m_sde = plain("dpmpp_2m_sde", "dpmpp_2m_sde_gpu")(_dpmpp_2m_sde(_midpoint_weight))
dpmpp_2m_sde_heun = plain("dpmpp_2m_sde_heun", "dpmpp_2m_sde_heun_gpu")(_dpmpp_2m_sde(_heun_weight))


@plain("dpmpp_3m_sde", "dpmpp_3m_sde_gpu")
@with_ratio_levels
def dpmpp_3m_sde(walk: Walk) -> PlainSampling:
    x = walk.x
    history: list[_Past] = []
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        h = math.log(sigma / sigma_next)
        double = 2 * h
        x = x * math.exp(-double) - denoised * math.expm1(-double)
        phi_2 = math.expm1(-double) / double + 1
        phi_3 = phi_2 / double - 0.5
        if len(history) == 1:
            x = x + (denoised - history[0].denoised) * (phi_2 * h / history[0].h)
        elif len(history) == 2:
            first, second = history
            r0, r1 = first.h / h, second.h / h
            change_0 = (denoised - first.denoised) / r0
            change_1 = (first.denoised - second.denoised) / r1
            slope = change_0 + (change_0 - change_1) * (r0 / (r0 + r1))
            curve = (change_0 - change_1) / (r0 + r1)
            x = x + slope * phi_2 - curve * phi_3
        x = x + walk.noise.brownian(sigma, sigma_next) * (sigma_next * math.sqrt(-math.expm1(-double)))
        history = [_Past(denoised, h), *history[:1]]
    return x


@plain("er_sde")
@with_ratio_levels
def er_sde(walk: Walk) -> PlainSampling:
    """The extended reverse-time equation at third order (arXiv 2309.06169)."""
    x = walk.x
    denoised_before: torch.Tensor | None = None
    slope_before: torch.Tensor | None = None
    for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
        denoised = yield Wish(x, sigma, step)
        if sigma_next == 0:
            x = denoised
            continue
        scale = _er_scale(sigma_next)
        ratio = scale / _er_scale(sigma)
        x = x * ratio + denoised * (1 - ratio)
        slope = None
        if denoised_before is not None:
            change = sigma_next - sigma
            first, second = _er_integrals(sigma, sigma_next)
            slope = (denoised - denoised_before) / (sigma - walk.sigmas[step - 1])
            x = x + slope * (change + first * scale)
            if slope_before is not None:
                curve = (slope - slope_before) / ((sigma - walk.sigmas[step - 2]) / 2)
                x = x + curve * (change * change / 2 + second * scale)
        x = x + walk.noise.normal() * math.sqrt(max(sigma_next**2 - (sigma * ratio) ** 2, 0.0))
        denoised_before, slope_before = denoised, slope
    return x


@dataclass(frozen=True, slots=True, eq=False)
class _Past:
    denoised: torch.Tensor
    h: float


def _er_scale(sigma: float) -> float:
    return sigma * (math.exp(sigma**0.3) + 10)


def _er_integrals(sigma: float, sigma_next: float) -> tuple[float, float]:
    """The integrals of 1 / scale and (s - sigma) / scale over the step, by 200 equal pieces."""
    width = (sigma - sigma_next) / 200
    levels = [sigma_next + place * width for place in range(200)]
    return (
        sum(width / _er_scale(level) for level in levels),
        sum(width * (level - sigma) / _er_scale(level) for level in levels),
    )
