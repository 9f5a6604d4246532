"""UniPC (arXiv 2302.04867), multistep, predicting the clean latent; the names differ in B(h)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from runtime.diffusion.samplers.base import PlainSampling, Walk, Wish, plain

LOWEST_LEVEL = 0.001
HIGHEST_ORDER = 3


def _unipc(scale_of: Callable[[float], float]) -> Callable[[Walk], PlainSampling]:
    def run(walk: Walk) -> PlainSampling:
        sigmas = [*walk.sigmas[:-1], walk.sigmas[-1] or LOWEST_LEVEL]
        steps = len(sigmas) - 1
        highest = max(min(HIGHEST_ORDER, steps - 1), 1)
        x = walk.x
        known = [(yield Wish(x, sigmas[0], 0))]
        for step in range(1, steps + 1):
            order = min(highest, step, steps + 1 - step)
            move = _Move(sigmas, step, order, scale_of)
            predicted = move.predict(x, known)
            if step == steps:
                return predicted
            denoised = yield Wish(predicted, sigmas[step], step)
            x = move.correct(x, known, denoised)
            known = [denoised, *known[: HIGHEST_ORDER - 1]]
        return x

    return run


uni_pc = plain("uni_pc", skips_penultimate=True)(_unipc(lambda h: h))
uni_pc_bh2 = plain("uni_pc_bh2", skips_penultimate=True)(_unipc(math.expm1))


class _Move:
    """One step of a given order. The first of the known estimates is that of the level where it starts."""

    def __init__(
        self, sigmas: Sequence[float], step: int, order: int, scale_of: Callable[[float], float]
    ) -> None:
        logs = [-math.log(sigma) for sigma in sigmas[max(step - order, 0) : step + 1]]
        h = logs[-1] - logs[-2]
        self.shrink, self.gain = sigmas[step] / sigmas[step - 1], math.expm1(-h)
        self.scale = scale_of(-h)
        self.ratios = [(log - logs[-2]) / h for log in reversed(logs[:-2])]
        self._moments = _moments(-h, self.scale, order)
        self.order = order

    def predict(self, x: torch.Tensor, known: Sequence[torch.Tensor]) -> torch.Tensor:
        weights = [0.5] if self.order == 2 else self._solve(self.ratios)
        return self._base(x, known) - self._sum(weights, known)

    def correct(self, x: torch.Tensor, known: Sequence[torch.Tensor], denoised: torch.Tensor) -> torch.Tensor:
        weights = [0.5] if self.order == 1 else self._solve([*self.ratios, 1.0])
        earlier = self._sum(weights[:-1], known)
        return self._base(x, known) - earlier - (denoised - known[0]) * (weights[-1] * self.scale)

    def _base(self, x: torch.Tensor, known: Sequence[torch.Tensor]) -> torch.Tensor:
        return x * self.shrink - known[0] * self.gain

    def _sum(self, weights: Sequence[float], known: Sequence[torch.Tensor]) -> torch.Tensor | float:
        total: torch.Tensor | float = 0.0
        for weight, ratio, estimate in zip(weights, self.ratios, known[1:], strict=False):
            total = total + (estimate - known[0]) * (weight * self.scale / ratio)
        return total

    def _solve(self, ratios: Sequence[float]) -> list[float]:
        size = len(ratios)
        if size == 0:
            return []
        powers = np.array([[ratio**power for ratio in ratios] for power in range(size)])
        return [float(value) for value in np.linalg.solve(powers, np.array(self._moments[:size]))]


def _moments(h: float, scale: float, order: int) -> list[float]:
    """k! * phi_{k + 1}(h) * h / B(h) for k = 1 .. order."""
    moments, phi = [], math.expm1(h) / h - 1
    for k in range(1, order + 1):
        moments.append(phi * math.factorial(k) / scale)
        phi = phi / h - 1 / math.factorial(k + 1)
    return moments
