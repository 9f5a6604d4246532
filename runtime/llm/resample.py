"""Sound at another rate, by a windowed sinc that takes away what the new rate cannot carry."""

from __future__ import annotations

import torch

_ZERO_CROSSINGS = 24
# Of the lower rate's half; the rest is where the filter falls off.
_PASSED = 0.95
_SAMPLES_A_STEP = 1 << 16


def resample(samples: torch.Tensor, rate: int, wanted: int) -> torch.Tensor:
    """[n] at `rate` samples a second to [n * wanted / rate], float32; beyond its ends there is silence."""
    if rate == wanted or not len(samples):
        return samples
    count = max(1, round(len(samples) * wanted / rate))
    steps = range(0, count, _SAMPLES_A_STEP)
    return torch.cat(
        [_part(samples, rate, wanted, first, min(first + _SAMPLES_A_STEP, count)) for first in steps]
    )


def _part(samples: torch.Tensor, rate: int, wanted: int, first: int, stop: int) -> torch.Tensor:
    cutoff = _PASSED * min(1.0, wanted / rate)
    width = int(_ZERO_CROSSINGS / cutoff) + 1
    instants = torch.arange(first, stop, dtype=torch.float64) * (rate / wanted)
    offsets = torch.arange(-width, width + 1)
    places = instants.floor().long()[:, None] + offsets
    distances = (instants[:, None] - places) * cutoff
    window = torch.cos(distances.clamp(-_ZERO_CROSSINGS, _ZERO_CROSSINGS) * (torch.pi / 2 / _ZERO_CROSSINGS))
    weights = (torch.sinc(distances) * window**2 * cutoff).float()
    is_there = (places >= 0) & (places < len(samples))
    return (samples[places.clamp(0, len(samples) - 1)] * weights * is_there).sum(1)
