"""DPM-Solver (arXiv 2206.00927) with a fixed and with an adaptive step, in the time -ln(sigma)."""

from __future__ import annotations

import math
from collections.abc import Generator

import torch

from runtime.diffusion.samplers.base import PlainSampling, Walk, Wish, plain
from runtime.platform.errors import Unsupported

RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 0.05, 0.0078
FIRST_STEP, SAFETY = 0.05, 0.81
SMALLEST_FACTOR = 1e-8
MOST_ATTEMPTS = 1000

Solved = Generator[Wish, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]


def _last_level(walk: Walk) -> float:
    return walk.sigmas[-1] if walk.sigmas[-1] > 0 else walk.sigmas[-2]


@plain("dpm_fast")
def dpm_fast(walk: Walk) -> PlainSampling:
    """As many evaluations as steps, in leaps of third order and a shorter one at the end.

    It stops at the lowest level above zero.
    """
    evaluations = len(walk.sigmas) - 1
    start, end = -math.log(walk.sigmas[0]), -math.log(_last_level(walk))
    leaps = evaluations // 3 + 1
    orders = [3] * (leaps - 2) + [2, 1] if evaluations % 3 == 0 else [3] * (leaps - 1) + [evaluations % 3]
    x, done = walk.x, 0
    for place, order in enumerate(orders):
        t = start + (end - start) * place / leaps
        h = (end - start) / leaps
        eps = yield from _slope(x, t, done)
        _, x = yield from _leap(x, eps, t, h, order, 1 / 3 if order == 3 else 1 / 2, done)
        done += order
    return x


@plain("dpm_adaptive")
def dpm_adaptive(walk: Walk) -> PlainSampling:
    """Third order with a second-order estimate beside it; their difference sets the step."""
    t, end = -math.log(walk.sigmas[0]), -math.log(_last_level(walk))
    steps, length = len(walk.sigmas) - 1, end - t
    x, before, h = walk.x, walk.x, FIRST_STEP
    for _ in range(MOST_ATTEMPTS):
        if t >= end - 1e-5:
            return x
        step = min(int(steps * (1 - (end - t) / length)), steps - 1)
        taken = min(h, end - t)
        eps = yield from _slope(x, t, step)
        low, high = yield from _leap(x, eps, t, taken, 3, 1 / 3, step)
        allowed = torch.maximum(low.abs(), before.abs()).mul(RELATIVE_TOLERANCE).clamp(min=ABSOLUTE_TOLERANCE)
        error = float(((low - high) / allowed).square().mean().sqrt())
        factor = 1 + math.atan((1 / (error + SMALLEST_FACTOR)) ** (1 / 3) - 1)
        if factor >= SAFETY:
            x, before, t = high, low, t + taken
        h = taken * factor
    raise Unsupported(f"dpm_adaptive did not arrive within {MOST_ATTEMPTS} attempts; take another sampler")


def _slope(x: torch.Tensor, t: float, step: int) -> PlainSampling:
    sigma = math.exp(-t)
    denoised = yield Wish(x, sigma, step)
    return (x - denoised) / sigma


def _leap(
    x: torch.Tensor, eps: torch.Tensor, t: float, h: float, order: int, first: float, step: int
) -> Solved:
    """The answers of the order below and of `order` for one step from t to t + h."""
    sigma_end, grown = math.exp(-(t + h)), math.expm1(h)
    order_1 = x - eps * (sigma_end * grown)
    if order == 1:
        return order_1, order_1
    part = math.expm1(first * h)
    at_first = x - eps * (math.exp(-(t + first * h)) * part)
    change = (yield from _slope(at_first, t + first * h, step)) - eps
    order_2 = order_1 - change * (sigma_end / (2 * first) * grown)
    if order == 2:
        return order_1, order_2
    second = 2 * first
    part = math.expm1(second * h)
    sigma_second = math.exp(-(t + second * h))
    at_second = (
        x
        - eps * (sigma_second * part)
        - change * (sigma_second * (second / first) * (part / (second * h) - 1))
    )
    change = (yield from _slope(at_second, t + second * h, step)) - eps
    return order_2, order_1 - change * (sigma_end / second * (grown / h - 1))
