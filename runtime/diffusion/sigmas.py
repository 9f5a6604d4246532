"""Noise levels: what a family's levels are (`NoiseSchedule`) and which of them a sampler walks (`walk`).

Levels are Python floats with float32's values. Nothing here knows a latent, a sampler's maths or a network.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import mul

import torch

from runtime.diffusion.beta import beta_quantiles
from runtime.platform.errors import Unsupported
from runtime.platform.registry import Registry

MOST_STEPS = 100_000
NO_NOISE_LIMIT = 999999999.9
TERMINAL_ALPHA = 4.8973451890853435e-08


class NoiseSchedule(ABC):
    """`table` holds the levels, ascending. `timestep` is what the network is told at a level.

    `is_flow`: a latent at level s is `(1 - s) * clean + s * noise`; otherwise it is `clean + s * noise`.
    """

    is_flow: bool
    table: tuple[float, ...]

    @property
    def sigma_min(self) -> float:
        return self.table[0]

    @property
    def sigma_max(self) -> float:
        return self.table[-1]

    @abstractmethod
    def timestep(self, sigma: float) -> float: ...

    @abstractmethod
    def sigma(self, timestep: float) -> float: ...

    @abstractmethod
    def percent_to_sigma(self, percent: float) -> float:
        """The level that lies `percent` (0..1) of the way from noise to image."""

    @staticmethod
    def discrete(
        beta_start: float = 0.00085,
        beta_end: float = 0.012,
        *,
        linear_in_sqrt: bool = True,
        zero_terminal_snr: bool = False,
    ) -> NoiseSchedule:
        """The thousand levels of SD 1, 2 and XL."""
        return DiscreteSchedule(beta_start, beta_end, linear_in_sqrt, zero_terminal_snr)

    @staticmethod
    def flow(shift: float = 1.0, multiplier: float = 1000.0) -> NoiseSchedule:
        """Levels of a flow model; the network is told `sigma * multiplier`."""
        return FlowSchedule(shift, multiplier)

    @staticmethod
    def flux(mu: float = 1.15) -> NoiseSchedule:
        """FLUX's exponentially shifted levels; the network is told sigma itself."""
        return FluxSchedule(mu)


class DiscreteSchedule(NoiseSchedule):
    is_flow = False

    def __init__(
        self, beta_start: float, beta_end: float, linear_in_sqrt: bool, zero_terminal_snr: bool
    ) -> None:
        power = 2 if linear_in_sqrt else 1
        first, last = beta_start ** (1 / power), beta_end ** (1 / power)
        betas = [(first + i / 999 * (last - first)) ** power for i in range(1000)]
        alphas = list(accumulate((1 - beta for beta in betas), mul))
        if zero_terminal_snr:
            alphas = _with_zero_terminal_snr(alphas)
        self.table = _float32(math.sqrt((1 - alpha) / alpha) for alpha in alphas)
        self._logs = [math.log(sigma) for sigma in self.table]

    def timestep(self, sigma: float) -> float:
        if sigma <= 0:
            return 0.0
        log = math.log(sigma)
        right = min(max(bisect_left(self._logs, log), 1), len(self._logs) - 1)
        nearer_left = log - self._logs[right - 1] <= self._logs[right] - log
        return float(right - 1 if nearer_left else right)

    def sigma(self, timestep: float) -> float:
        place = min(max(timestep, 0.0), len(self._logs) - 1.0)
        low = int(place)
        high = min(low + 1, len(self._logs) - 1)
        return math.exp(self._logs[low] + (place - low) * (self._logs[high] - self._logs[low]))

    def percent_to_sigma(self, percent: float) -> float:
        if percent <= 0:
            return NO_NOISE_LIMIT
        return 0.0 if percent >= 1 else self.sigma((1 - percent) * 999)


class FlowSchedule(NoiseSchedule):
    is_flow = True

    def __init__(self, shift: float, multiplier: float) -> None:
        self.shift, self.multiplier = shift, multiplier
        self.table = _float32(self._shifted(i / 1000) for i in range(1, 1001))

    def timestep(self, sigma: float) -> float:
        return sigma * self.multiplier

    def sigma(self, timestep: float) -> float:
        return self._shifted(timestep / self.multiplier)

    def percent_to_sigma(self, percent: float) -> float:
        if percent <= 0:
            return 1.0
        return 0.0 if percent >= 1 else self._shifted(1 - percent)

    def _shifted(self, u: float) -> float:
        return self.shift * u / (1 + (self.shift - 1) * u)


class FluxSchedule(NoiseSchedule):
    is_flow = True

    def __init__(self, mu: float) -> None:
        self.mu = mu
        self.table = _float32(self.sigma(i / 10000) for i in range(1, 10001))

    def timestep(self, sigma: float) -> float:
        return sigma

    def sigma(self, timestep: float) -> float:
        if timestep <= 0:
            return 0.0
        return math.exp(self.mu) / (math.exp(self.mu) + (1 / timestep - 1))

    def percent_to_sigma(self, percent: float) -> float:
        if percent <= 0:
            return 1.0
        return 0.0 if percent >= 1 else self.sigma(1 - percent)


def _with_zero_terminal_snr(alphas: Sequence[float]) -> list[float]:
    roots = [math.sqrt(alpha) for alpha in alphas]
    scale = roots[0] / (roots[0] - roots[-1])
    rescaled = [((root - roots[-1]) * scale) ** 2 for root in roots]
    return [*rescaled[:-1], TERMINAL_ALPHA]


def _float32(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(torch.tensor(list(values), dtype=torch.float64).float().tolist())


def _linspace(first: float, last: float, count: int) -> list[float]:
    if count == 1:
        return [first]
    return [first + (last - first) * i / (count - 1) for i in range(count)]


Spacing = Callable[[NoiseSchedule, int], list[float]]
spacings: Registry[Spacing] = Registry("scheduler")


@spacings.register("simple")
def _simple(schedule: NoiseSchedule, steps: int) -> list[float]:
    count = len(schedule.table)
    return [schedule.table[count - 1 - i * count // steps] for i in range(steps)] + [0.0]


@spacings.register("sgm_uniform")
def _sgm_uniform(schedule: NoiseSchedule, steps: int) -> list[float]:
    ends = schedule.timestep(schedule.sigma_max), schedule.timestep(schedule.sigma_min)
    return [schedule.sigma(t) for t in _linspace(*ends, steps + 1)[:-1]] + [0.0]


@spacings.register("karras")
def _karras(schedule: NoiseSchedule, steps: int) -> list[float]:
    rho = 7
    ends = schedule.sigma_max ** (1 / rho), schedule.sigma_min ** (1 / rho)
    return [root**rho for root in _linspace(*ends, steps)] + [0.0]


@spacings.register("exponential")
def _exponential(schedule: NoiseSchedule, steps: int) -> list[float]:
    ends = math.log(schedule.sigma_max), math.log(schedule.sigma_min)
    return [math.exp(log) for log in _linspace(*ends, steps)] + [0.0]


@spacings.register("ddim_uniform")
def _ddim_uniform(schedule: NoiseSchedule, steps: int) -> list[float]:
    starts_at_zero = math.isclose(schedule.table[1], 0, abs_tol=1e-5)
    stride = max(len(schedule.table) // (steps + starts_at_zero), 1)
    rising = list(schedule.table[1::stride])
    return rising[::-1] if starts_at_zero else [*rising[::-1], 0.0]


@spacings.register("beta")
def _beta(schedule: NoiseSchedule, steps: int) -> list[float]:
    last = len(schedule.table) - 1
    quantiles = beta_quantiles([1 - i / steps for i in range(steps)], 0.6, 0.6)
    places = [round(quantile * last) for quantile in quantiles]
    return [schedule.table[place] for place in dict.fromkeys(places)] + [0.0]


@spacings.register("normal")
def _normal(schedule: NoiseSchedule, steps: int) -> list[float]:
    ends = schedule.timestep(schedule.sigma_max), schedule.timestep(schedule.sigma_min)
    if math.isclose(schedule.sigma(ends[1]), 0, abs_tol=1e-5):
        return [schedule.sigma(t) for t in _linspace(*ends, steps + 1)]
    return [schedule.sigma(t) for t in _linspace(*ends, steps)] + [0.0]


@spacings.register("linear_quadratic")
def _linear_quadratic(schedule: NoiseSchedule, steps: int) -> list[float]:
    if steps == 1:
        return [schedule.sigma_max, 0.0]
    threshold = 0.025
    linear = steps // 2
    quadratic = steps - linear
    gap = linear - threshold * steps
    a = gap / (linear * quadratic**2)
    b = threshold / linear - 2 * gap / quadratic**2
    c = a * linear**2
    rising = [i * threshold / linear for i in range(linear)]
    rising += [a * i * i + b * i + c for i in range(linear, steps)]
    return [(1 - value) * schedule.sigma_max for value in [*rising, 1.0]]


@spacings.register("kl_optimal")
def _kl_optimal(schedule: NoiseSchedule, steps: int) -> list[float]:
    ends = math.atan(schedule.sigma_max), math.atan(schedule.sigma_min)
    return [math.tan(angle) for angle in _linspace(*ends, steps)] + [0.0]


def spaced(schedule: NoiseSchedule, scheduler: str, steps: int) -> list[float]:
    """`steps + 1` levels (some spacings give one more or fewer), highest first, ending in 0."""
    if not 1 <= steps <= MOST_STEPS:
        raise Unsupported(f"{steps} steps; a sampler takes 1 to {MOST_STEPS}")
    return list(_float32(spacings[scheduler](schedule, steps)))


def walk(
    schedule: NoiseSchedule,
    scheduler: str,
    steps: int,
    denoise: float = 1.0,
    *,
    skips_penultimate: bool = False,
) -> list[float]:
    """The levels for a sampler that does the last `denoise` part of the way; none for 0."""
    if math.isnan(denoise):
        raise Unsupported("denoise is not a number; it is the part of the way to go, 0 to 1")
    if denoise <= 0:
        return []
    whole = steps if denoise > 0.9999 else int(steps / denoise)
    if skips_penultimate:
        levels = spaced(schedule, scheduler, whole + 1)
        levels = [*levels[:-2], levels[-1]]
    else:
        levels = spaced(schedule, scheduler, whole)
    return levels if denoise > 0.9999 else levels[-(steps + 1) :]


def part(sigmas: Sequence[float], start_step: int, end_step: int, full_denoise: bool) -> list[float]:
    """Steps `start_step` to `end_step` of a walk; `full_denoise` makes a walk that was cut short end in 0."""
    end_step = max(end_step, 0)
    levels = list(sigmas[: end_step + 1])
    if end_step < len(sigmas) - 1 and full_denoise and levels:
        levels[-1] = 0.0
    if start_step >= len(levels) - 1:
        return []
    return levels[max(start_step, 0) :]
