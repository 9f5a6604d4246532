"""Noise levels as a socket: made for a model or by a formula, cut, flipped and edited. SIGMAS is [n + 1]."""

from __future__ import annotations

import math
import re
from typing import Annotated

import torch

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.parts import present
from nodes.sampling import Denoise, SchedulerName, Steps
from nodes.types import Float, Int, Model, Options, Sigmas

SCHEDULERS = "model/sampling/schedulers"
EDITING = "model/sampling/sigmas"
ADVANCED = Options({"advanced": True})
# A walk upwards cannot begin at no noise at all.
LEAST_SIGMA = 0.0001

Level = Annotated[float, Float(0.0, 5000.0, 0.01), ADVANCED]
Rho = Annotated[float, Float(0.0, 100.0, 0.01), ADVANCED]


@node("BasicScheduler", category=SCHEDULERS)
def basic(
    ctx: NodeContext,
    *,
    model: Model,
    scheduler: SchedulerName = "simple",
    steps: Steps = 20,
    denoise: Denoise = 1.0,
) -> Sigmas:
    """The levels that a KSampler would walk."""
    return ctx.diffusion.sigmas(present(model, "MODEL"), scheduler, steps, denoise)


@node("KarrasScheduler", category=SCHEDULERS)
def karras(
    *, steps: Steps = 20, sigma_max: Level = 14.614642, sigma_min: Level = 0.0291675, rho: Rho = 7.0
) -> Sigmas:
    """Even steps in the `rho`-th root of the level (Karras et al. 2022)."""
    if rho == 0:
        raise NodeInputError("rho 0 has no root; choose more than 0")
    high, low = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return _ending_clean((high + _ramp(steps) * (low - high)) ** rho)


@node("ExponentialScheduler", category=SCHEDULERS)
def exponential(*, steps: Steps = 20, sigma_max: Level = 14.614642, sigma_min: Level = 0.0291675) -> Sigmas:
    """Even steps in the logarithm of the level."""
    high, low = _logarithms(sigma_max, sigma_min)
    return _ending_clean(torch.exp(high + _ramp(steps) * (low - high)))


@node("PolyexponentialScheduler", category=SCHEDULERS)
def polyexponential(
    *, steps: Steps = 20, sigma_max: Level = 14.614642, sigma_min: Level = 0.0291675, rho: Rho = 1.0
) -> Sigmas:
    """As exponential, with the even steps raised to `rho`."""
    high, low = _logarithms(sigma_max, sigma_min)
    return _ending_clean(torch.exp((1 - _ramp(steps)) ** rho * (high - low) + low))


@node("VPScheduler", category=SCHEDULERS)
def variance_preserving(
    *,
    steps: Steps = 20,
    beta_d: Level = 19.9,
    beta_min: Level = 0.1,
    eps_s: Annotated[float, Float(0.0, 1.0, 0.0001), ADVANCED] = 0.001,
) -> Sigmas:
    """Even steps in time of a variance-preserving process (Song et al. 2021)."""
    time = torch.linspace(1, eps_s, steps)
    return _ending_clean(torch.expm1(beta_d * time**2 / 2 + beta_min * time).sqrt())


@node("ManualSigmas", category=EDITING, experimental=True)
def manual(*, sigmas: str = "1, 0.5") -> Sigmas:
    """The numbers in a text, as they stand."""
    numbers = [float(number) for number in re.findall(r"[-+]?(?:\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?", sigmas)]
    return torch.tensor(numbers)


@node("SplitSigmas", category=EDITING, outputs=("high_sigmas", "low_sigmas"))
def split(*, sigmas: Sigmas, step: Annotated[int, Int(0, 10_000)] = 0) -> tuple[Sigmas, Sigmas]:
    """The levels up to a step, and those from it on."""
    return sigmas[: step + 1], sigmas[step:]


@node("SplitSigmasDenoise", category=EDITING, outputs=("high_sigmas", "low_sigmas"))
def split_by_denoise(*, sigmas: Sigmas, denoise: Denoise = 1.0) -> tuple[Sigmas, Sigmas]:
    """The last `denoise` share of the steps, and what lies before them."""
    steps = max(len(sigmas) - 1, 0)
    first = steps - round(steps * denoise)
    return sigmas[: first + 1], sigmas[first:]


@node("FlipSigmas", category=EDITING)
def flip(*, sigmas: Sigmas) -> Sigmas:
    """The levels backwards, for a walk from a picture to its noise."""
    flipped = sigmas.flip(0)
    if len(flipped) and flipped[0] == 0:
        flipped[0] = LEAST_SIGMA
    return flipped


@node("SetFirstSigma", category=EDITING)
def set_first(*, sigmas: Sigmas, sigma: Annotated[float, Float(0.0, 20000.0, 0.001)] = 136.0) -> Sigmas:
    """Replaces the level at which the walk begins."""
    if not len(sigmas):
        raise NodeInputError("sigmas is empty: there is no first level to set")
    changed = sigmas.clone()
    changed[0] = sigma
    return changed


def _ramp(steps: int) -> torch.Tensor:
    return torch.linspace(0, 1, steps)


def _logarithms(sigma_max: float, sigma_min: float) -> tuple[float, float]:
    if sigma_max <= 0 or sigma_min <= 0:
        raise NodeInputError("sigma_max and sigma_min must be more than 0")
    return math.log(sigma_max), math.log(sigma_min)


def _ending_clean(sigmas: torch.Tensor) -> torch.Tensor:
    return torch.cat((sigmas, torch.zeros(1)))
