"""SA-Solver (arXiv 2309.05019): a stochastic Adams predictor of order three with a corrector of order four.

Noise is added between a fifth and four fifths of the way; outside it is a deterministic multistep solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch

from runtime.diffusion.samplers.base import PlainSampling, Walk, Wish, plain, with_ratio_levels
from runtime.diffusion.samplers.quadrature import integral, lagrange

PREDICTOR_ORDER, CORRECTOR_ORDER = 3, 4
NOISE_FROM, NOISE_TO = 0.2, 0.8


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A clean estimate and where it was made, as -ln(sigma)."""

    place: float
    denoised: torch.Tensor


def _sa_solver(*, evaluates_again: bool) -> Callable[[Walk], PlainSampling]:
    @with_ratio_levels
    def run(walk: Walk) -> PlainSampling:
        noisy = _noisy_levels(walk)
        x = predicted = walk.x
        known: list[_Known] = []
        noise: torch.Tensor | float = 0.0
        for step, (sigma, sigma_next) in enumerate(pairwise(walk.sigmas)):
            denoised = yield Wish(predicted, sigma, step)
            known = [_Known(-math.log(sigma), denoised), *known]
            if step > 0:
                before = walk.sigmas[step - 1]
                x = _advanced(x, known[:CORRECTOR_ORDER], before, sigma, noisy(sigma)) + noise
                if evaluates_again:
                    again = yield Wish(x, sigma, step)
                    known[0] = _Known(-math.log(sigma), again)
            known = known[: CORRECTOR_ORDER - 1]
            if sigma_next == 0:
                return known[0].denoised
            eta = noisy(sigma_next)
            noise = 0.0
            if eta > 0:
                spread = sigma_next * math.sqrt(-math.expm1(-2 * eta * math.log(sigma / sigma_next)))
                noise = walk.noise.normal() * spread
            predicted = _advanced(x, known[:PREDICTOR_ORDER], sigma, sigma_next, eta) + noise
        return predicted

    return run


sa_solver = plain("sa_solver")(_sa_solver(evaluates_again=False))
sa_solver_pece = plain("sa_solver_pece")(_sa_solver(evaluates_again=True))


def _noisy_levels(walk: Walk) -> Callable[[float], float]:
    """1 at the levels where noise is added, 0 elsewhere."""
    first, last = walk.sigma_at(NOISE_FROM), walk.sigma_at(NOISE_TO)
    return lambda sigma: float(last <= sigma <= first)


def _advanced(
    x: torch.Tensor, known: Sequence[_Known], sigma: float, sigma_next: float, eta: float
) -> torch.Tensor:
    """One step without its noise: the estimates are joined by a polynomial and integrated exactly."""
    start, end = -math.log(sigma), -math.log(sigma_next)
    places = [one.place for one in known]

    def integrand(which: int, at: float) -> float:
        return (1 + eta) * math.exp((1 + eta) * (at - end)) * lagrange(places, which, at)

    x = x * math.exp(-(1 + eta) * (end - start))
    for which, one in enumerate(known):
        x = x + one.denoised * integral(partial(integrand, which), start, end)
    return x
