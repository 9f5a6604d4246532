"""A tone stays the same tone at another rate, unless that rate cannot carry it."""

from __future__ import annotations

import math

import pytest
import torch

from runtime.llm.resample import resample


def tone(hertz: float, rate: int, seconds: float = 0.5) -> torch.Tensor:
    return torch.sin(
        2 * math.pi * hertz * torch.arange(round(rate * seconds), dtype=torch.float64) / rate
    ).float()


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 44101])
def test_a_tone_stays_that_tone(rate: int) -> None:
    made, expected = resample(tone(440, rate), rate, 16000), tone(440, 16000)
    assert abs(len(made) - len(expected)) <= 1
    inside = slice(200, min(len(made), len(expected)) - 200)
    assert (made[inside] - expected[inside]).abs().max() < 2e-3


def test_what_the_new_rate_cannot_carry_is_gone() -> None:
    made = resample(tone(11000, 48000), 48000, 16000)
    assert made[200:-200].abs().max() < 2e-3


def test_the_same_rate_changes_nothing() -> None:
    samples = tone(440, 16000)
    assert resample(samples, 16000, 16000) is samples


def test_long_sounds_have_no_seams() -> None:
    made = resample(tone(440, 8000, 6.0), 8000, 16000)
    assert (made[200:-200] - tone(440, 16000, 6.0)[200:-200]).abs().max() < 2e-3


def test_a_single_sample_stays_one() -> None:
    assert len(resample(torch.ones(1), 48000, 16000)) == 1
