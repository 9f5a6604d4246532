"""Noise by seed: the measured numbers, and a Brownian path that is one."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from runtime.diffusion.noise import BrownianPath, RequestNoise, start_noise


def test_start_noise_has_the_measured_numbers() -> None:
    first = start_noise((1, 4, 64, 64), 42).flatten()[:6].tolist()
    assert first == pytest.approx([1.92692, 1.48728, 0.900717, -2.10552, 0.678418, -1.23454], rel=1e-5)
    small = start_noise((1, 4, 2, 2), 0).flatten()[:6].tolist()
    assert small == pytest.approx([-1.12584, -1.15236, -0.250579, -0.433879, 0.84871, 0.692009], rel=1e-5)


def test_a_batch_is_drawn_in_one_call_but_an_index_image_by_image() -> None:
    pair = start_noise((2, 4, 8, 8), 7)
    picked = start_noise((2, 4, 8, 8), 7, batch_index=(1, 0))
    generator = torch.Generator().manual_seed(7)
    one_by_one = [torch.randn(1, 4, 8, 8, generator=generator) for _ in range(2)]
    assert torch.equal(picked, torch.cat(one_by_one[::-1]))
    assert torch.equal(pair[:1], start_noise((2, 4, 8, 8), 7)[:1])


def test_the_largest_seed_is_taken() -> None:
    assert start_noise((1, 1, 2, 2), 2**64 - 1).isfinite().all()
    assert RequestNoise(2**64 - 1, torch.zeros(1, 1, 2, 2), (2.0, 1.0)).normal().isfinite().all()


def test_noise_within_a_walk_begins_with_the_next_seed() -> None:
    like = torch.zeros(1, 4, 8, 8, dtype=torch.float64)
    noise = RequestNoise(41, like, (2.0, 1.0, 0.0)).normal()
    assert torch.equal(noise, start_noise((1, 4, 8, 8), 42).double())


def test_a_path_does_not_depend_on_how_it_is_asked() -> None:
    one, other = (BrownianPath(3, (4,), 0.03, 14.0) for _ in range(2))
    whole = one.increment(0.5, 7.0) * 6.5**0.5
    parts = other.increment(2.0, 7.0) * 5.0**0.5 + other.increment(0.5, 2.0) * 1.5**0.5
    assert torch.allclose(whole, parts, atol=1e-5)


def test_increments_of_a_path_are_independent_and_of_unit_variance() -> None:
    path = BrownianPath(5, (40_000,), 0.03, 14.0)
    levels = [14.0, 9.0, 8.9, 1.0, 0.2, 0.05, 0.031]
    increments = torch.stack([path.increment(a, b) for a, b in pairwise(levels)])
    assert torch.allclose(increments.var(dim=1), torch.ones(6), atol=0.03)
    assert torch.allclose(increments.corrcoef(), torch.eye(6), atol=0.02)


def test_seeds_give_different_paths() -> None:
    a, b = (BrownianPath(seed, (1000,), 0.1, 1.0).increment(0.1, 1.0) for seed in (1, 2))
    assert abs(float(torch.stack([a, b]).corrcoef()[0, 1])) < 0.12
