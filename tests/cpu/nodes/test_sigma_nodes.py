"""Noise levels by formula, and edited."""

from __future__ import annotations

import pytest
import torch

from nodes.context import NodeInputError
from nodes.sigmas import (
    exponential,
    flip,
    karras,
    manual,
    polyexponential,
    set_first,
    split,
    split_by_denoise,
    variance_preserving,
)

# ComfyUI's levels for SD 1.5, whose limits these are.
LIMITS = {"sigma_max": 14.614642, "sigma_min": 0.0291675}
KARRAS = [14.6146, 7.90293, 4.02774, 1.91036, 0.828868, 0.32112, 0.107198, 0.0291672, 0]
EXPONENTIAL = [14.6146, 6.01297, 2.47394, 1.01787, 0.418785, 0.172303, 0.0708914, 0.0291672, 0]


def test_formulas_give_the_known_levels() -> None:
    torch.testing.assert_close(karras(steps=8, **LIMITS), torch.tensor(KARRAS), rtol=2e-4, atol=1e-6)
    torch.testing.assert_close(
        exponential(steps=8, **LIMITS), torch.tensor(EXPONENTIAL), rtol=2e-4, atol=1e-6
    )
    torch.testing.assert_close(
        polyexponential(steps=8, rho=1.0, **LIMITS), torch.tensor(EXPONENTIAL), rtol=2e-4, atol=1e-6
    )


@pytest.mark.parametrize("make", [karras, exponential, polyexponential, variance_preserving])
@pytest.mark.parametrize("steps", [1, 2, 20])
def test_levels_fall_to_zero(make: object, steps: int) -> None:
    assert callable(make)
    levels = make(steps=steps)
    assert levels.shape == (steps + 1,)
    assert levels[-1] == 0
    assert (levels.diff() < 0).all()


def test_limits_without_a_logarithm_are_refused() -> None:
    with pytest.raises(NodeInputError, match="more than 0"):
        exponential(sigma_min=0)
    with pytest.raises(NodeInputError, match="rho 0"):
        karras(rho=0)


def test_numbers_are_read_from_a_text() -> None:
    torch.testing.assert_close(manual(sigmas="1, .5;2e-1 0"), torch.tensor([1, 0.5, 0.2, 0]))
    assert manual(sigmas="none").shape == (0,)


def test_halves_share_the_level_at_which_they_were_split() -> None:
    levels = torch.tensor([4.0, 3, 2, 1, 0])
    high, low = split(sigmas=levels, step=1)
    assert (high.tolist(), low.tolist()) == ([4, 3], [3, 2, 1, 0])
    high, low = split_by_denoise(sigmas=levels, denoise=0.25)
    assert (high.tolist(), low.tolist()) == ([4, 3, 2, 1], [1, 0])
    high, low = split_by_denoise(sigmas=levels, denoise=1.0)
    assert (high.tolist(), low.tolist()) == ([4], levels.tolist())


def test_backwards_levels_begin_just_above_zero() -> None:
    levels = torch.tensor([2.0, 1, 0])
    torch.testing.assert_close(flip(sigmas=levels), torch.tensor([0.0001, 1, 2]))
    assert levels.tolist() == [2, 1, 0]
    assert flip(sigmas=torch.tensor([])).shape == (0,)


def test_the_first_level_can_be_set() -> None:
    levels = torch.tensor([2.0, 1, 0])
    assert set_first(sigmas=levels, sigma=5).tolist() == [5, 1, 0]
    assert levels[0] == 2
    with pytest.raises(NodeInputError, match="empty"):
        set_first(sigmas=torch.tensor([]))
