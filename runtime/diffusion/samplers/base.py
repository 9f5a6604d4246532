"""What a sampler is: a generator that yields wishes, receives answers and returns where it ended.

It knows no model, no guidance, no device and no other request. Levels are Python floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from runtime.platform.registry import Registry

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

ALMOST_NOTHING = 1e-4


class Wish(NamedTuple):
    """A clean estimate is wanted of `x` at level `sigma`; `step` is the step of the walk that needs it."""

    x: torch.Tensor
    sigma: float
    step: int


class Answer(NamedTuple):
    """`unguided` is the estimate from the negative alone, for samplers that asked for it."""

    denoised: torch.Tensor
    unguided: torch.Tensor | None = None


class SamplerNoise(Protocol):
    def normal(self) -> torch.Tensor:
        """The next independent standard normal."""

    def brownian(self, start: float, end: float) -> torch.Tensor:
        """The increment of one Brownian path between two times, scaled to unit variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Where a sampler begins, the levels it visits, and its source of noise.

    `sigma_at` gives the level that lies a part (0..1) of the way from noise to image.
    """

    x: torch.Tensor
    sigmas: tuple[float, ...]
    noise: SamplerNoise
    is_flow: bool
    sigma_at: Callable[[float], float]


Sampling = Generator[Wish, Answer, "torch.Tensor"]
PlainSampling = Generator[Wish, "torch.Tensor", "torch.Tensor"]
SplitSampling = Generator[Wish, "tuple[torch.Tensor, torch.Tensor]", "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class Sampler:
    """`skips_penultimate`: KSampler gives it one level more and leaves out the last but one."""

    start: Callable[[Walk], Sampling]
    needs_unguided: bool = False
    skips_penultimate: bool = False
    fresh_inpaint_noise: bool = False


samplers: Registry[Sampler] = Registry("sampler")


def plain(
    *names: str, skips_penultimate: bool = False, fresh_inpaint_noise: bool = False
) -> Callable[[Callable[[Walk], PlainSampling]], Callable[[Walk], PlainSampling]]:
    """Register a sampler that receives denoised estimates."""

    def register(sampler: Callable[[Walk], PlainSampling]) -> Callable[[Walk], PlainSampling]:
        def start(walk: Walk) -> Sampling:
            return _converted(sampler(walk), lambda answer: answer.denoised)

        for name in names:
            samplers.register(name)(
                Sampler(start, skips_penultimate=skips_penultimate, fresh_inpaint_noise=fresh_inpaint_noise)
            )
        return sampler

    return register


def split(*names: str) -> Callable[[Callable[[Walk], SplitSampling]], Callable[[Walk], SplitSampling]]:
    """Register a sampler that receives pairs of a guided and an unguided estimate."""

    def both(answer: Answer) -> tuple[torch.Tensor, torch.Tensor]:
        assert answer.unguided is not None, "the guidance did not keep the unguided estimate"
        return answer.denoised, answer.unguided

    def register(sampler: Callable[[Walk], SplitSampling]) -> Callable[[Walk], SplitSampling]:
        def start(walk: Walk) -> Sampling:
            return _converted(sampler(walk), both)

        for name in names:
            samplers.register(name)(Sampler(start, needs_unguided=True))
        return sampler

    return register


def _converted(sampler: Generator[Wish, T, torch.Tensor], convert: Callable[[Answer], T]) -> Sampling:
    try:
        wish = next(sampler)
        while True:
            answer = yield wish
            wish = sampler.send(convert(answer))
    except StopIteration as end:
        x: torch.Tensor = end.value
        return x
    finally:
        sampler.close()


def with_ratio_levels(
    sampler: Callable[[Walk], Generator[Wish, T, torch.Tensor]],
) -> Callable[[Walk], Generator[Wish, T, torch.Tensor]]:
    """Let a sampler written for `clean + s * noise` serve flow models.

    The change of variables z = x / (1 - sigma), s = sigma / (1 - sigma) makes one kind of latent the other.
    """

    @wraps(sampler)
    def run(walk: Walk) -> Generator[Wish, T, torch.Tensor]:
        if not walk.is_flow:
            return (yield from sampler(walk))
        # pure noise has no finite ratio; the level that stands in for it is as good as pure
        finite = walk.sigma_at(ALMOST_NOTHING)
        sigmas = [finite if sigma >= 1 else sigma for sigma in walk.sigmas]
        inner = sampler(
            Walk(
                x=walk.x / (1 - sigmas[0]),
                sigmas=tuple(_ratio(sigma) for sigma in sigmas),
                noise=_RatioNoise(walk.noise),
                is_flow=False,
                sigma_at=lambda part: _ratio(min(walk.sigma_at(part), finite)),
            )
        )
        try:
            wish = next(inner)
            while True:
                scale = 1 / (1 + wish.sigma)
                answer = yield Wish(wish.x * scale, wish.sigma * scale, wish.step)
                wish = inner.send(answer)
        except StopIteration as end:
            x: torch.Tensor = end.value
            return x * (1 - sigmas[-1])
        finally:
            inner.close()

    return run


def _ratio(sigma: float) -> float:
    return sigma / (1 - sigma)


@dataclass(frozen=True, slots=True, eq=False)
class _RatioNoise:
    """The times of the path stay those of the flow's own levels."""

    inner: SamplerNoise

    def normal(self) -> torch.Tensor:
        return self.inner.normal()

    def brownian(self, start: float, end: float) -> torch.Tensor:
        return self.inner.brownian(start / (1 + start), end / (1 + end))


def ancestral_levels(sigma: float, sigma_next: float) -> tuple[float, float]:
    """The level to step down to, and the noise to add there, so that both together end at `sigma_next`."""
    ratio = sigma_next / sigma
    up = min(sigma_next, sigma_next * math.sqrt(max(1 - ratio * ratio, 0.0)))
    return math.sqrt(sigma_next**2 - up**2), up


def flow_ancestral_levels(sigma: float, sigma_next: float) -> tuple[float, float, float]:
    """The same for flow models: the level to step down to, then the factors of latent and noise."""
    down = sigma_next * sigma_next / sigma
    keep = (1 - sigma_next) / (1 - down)
    return down, keep, math.sqrt(max(sigma_next**2 - (down * keep) ** 2, 0.0))
