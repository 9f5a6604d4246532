"""Noise by seed, drawn on the CPU for each request alone, so that no result depends on who shares a batch.

Start noise follows ComfyUI's rules to the number. The Brownian path of the SDE samplers is our own.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

import torch

SEED_LIMIT = 2**64
BROWNIAN_DEPTH = 16


def start_noise(shape: Sequence[int], seed: int, batch_index: Sequence[int] | None = None) -> torch.Tensor:
    """float32 [B, C, h, w], drawn in one call; with `batch_index`, image by image up to the largest index."""
    generator = torch.Generator().manual_seed(seed % SEED_LIMIT)
    if batch_index is None:
        return torch.randn(tuple(shape), generator=generator)
    drawn = [torch.randn((1, *shape[1:]), generator=generator) for _ in range(max(batch_index) + 1)]
    return torch.cat([drawn[index] for index in batch_index])


class RequestNoise:
    """What a sampler adds while it walks. The first and last level bound the Brownian path."""

    def __init__(self, seed: int, like: torch.Tensor, sigmas: Sequence[float]) -> None:
        self._like, self._seed = like, seed
        # one more than the seed of the start noise, which the sampler must not add a second time
        self._generator = torch.Generator().manual_seed((seed + 1) % SEED_LIMIT)
        levels = [sigma for sigma in sigmas if sigma > 0]
        self._path: BrownianPath | None = None
        self._ends = (min(levels), max(levels)) if levels else (1.0, 1.0)

    def normal(self) -> torch.Tensor:
        return self._placed(torch.randn(self._like.shape, generator=self._generator))

    def brownian(self, start: float, end: float) -> torch.Tensor:
        if self._path is None:
            self._path = BrownianPath(self._seed, tuple(self._like.shape), *self._ends)
        return self._placed(self._path.increment(start, end))

    def _placed(self, noise: torch.Tensor) -> torch.Tensor:
        return noise.to(self._like)


class BrownianPath:
    """One path over [low, high], the same for a seed however it is asked.

    The interval is halved geometrically; the value at each middle is drawn from the bridge between its
    neighbours with a generator of its own. Between the finest places the path is straight.
    """

    def __init__(self, seed: int, shape: tuple[int, ...], low: float, high: float) -> None:
        self._seed, self._shape = seed, shape
        self._low, self._high = low, max(high, low * (1 + 1e-6))
        self._start = torch.zeros(shape)
        self._end = self._draw(0) * math.sqrt(self._high - self._low)
        self._middles: OrderedDict[int, torch.Tensor] = OrderedDict()

    def increment(self, start: float, end: float) -> torch.Tensor:
        """The change between two times, divided by the root of their distance."""
        low, high = sorted((start, end))
        return (self._at(high) - self._at(low)) / math.sqrt(high - low)

    def _at(self, time: float) -> torch.Tensor:
        low, high, start, end, node = self._low, self._high, self._start, self._end, 1
        time = min(max(time, low), high)
        for _ in range(BROWNIAN_DEPTH):
            middle = math.sqrt(low * high)
            value = self._middle(node, low, high, start, end)
            if time < middle:
                node, high, end = 2 * node, middle, value
            else:
                node, low, start = 2 * node + 1, middle, value
        return start + (end - start) * ((time - low) / (high - low))

    def _middle(
        self, node: int, low: float, high: float, start: torch.Tensor, end: torch.Tensor
    ) -> torch.Tensor:
        if node not in self._middles:
            middle, length = math.sqrt(low * high), high - low
            mean = start + (end - start) * ((middle - low) / length)
            spread = math.sqrt((middle - low) * (high - middle) / length)
            self._middles[node] = mean + self._draw(node) * spread
            if len(self._middles) > 3 * BROWNIAN_DEPTH:
                self._middles.popitem(last=False)
        self._middles.move_to_end(node)
        return self._middles[node]

    def _draw(self, node: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(_mixed(self._seed, node))
        return torch.randn(self._shape, generator=generator)


def _mixed(seed: int, node: int) -> int:
    """Two numbers to one seed, by the finaliser of SplitMix64."""
    value = (seed + (node + 1) * 0x9E3779B97F4A7C15) % SEED_LIMIT
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % SEED_LIMIT
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % SEED_LIMIT
    return value ^ (value >> 31)
