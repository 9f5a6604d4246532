"""Masks made, combined and changed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nodes.mask import (
    composite,
    crop,
    feather,
    from_color,
    from_image,
    grow,
    invert,
    solid,
    threshold,
    to_image,
)


def dot(size: int = 7) -> torch.Tensor:
    mask = torch.zeros(1, size, size)
    mask[0, size // 2, size // 2] = 1
    return mask


def test_a_mask_is_a_grey_picture_and_comes_back_from_any_colour() -> None:
    mask = torch.rand(1, 3, 4)
    image = to_image(mask=mask)
    assert image.shape == (1, 3, 4, 3)
    assert torch.equal(from_image(image=image, channel="blue"), mask)


def test_a_picture_without_alpha_is_opaque() -> None:
    assert from_image(image=torch.zeros(1, 2, 2, 3), channel="alpha").unique().tolist() == [1]


def test_a_colour_is_matched_exactly() -> None:
    image = torch.tensor([[[[1.0, 0.0, 0.0], [1.0, 0.01, 0.0]]]])
    assert from_color(image=image, color=0xFF0000).tolist() == [[[1, 0]]]


def test_simple_masks() -> None:
    assert solid(value=0.5, width=3, height=2).tolist() == [[[0.5] * 3] * 2]
    assert invert(mask=solid(value=0.25, width=1, height=1)).item() == 0.75
    assert threshold(mask=torch.tensor([[[0.5, 0.6]]]), value=0.5).tolist() == [[[0, 1]]]
    assert crop(mask=torch.zeros(5, 6), x=4, y=1, width=9, height=2).shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("operation", "values"),
    [
        ("multiply", [0, 0, 0, 1]),
        ("add", [0, 1, 1, 1]),
        ("subtract", [0, 0, 1, 0]),
        ("and", [0, 0, 0, 1]),
        ("or", [0, 1, 1, 1]),
        ("xor", [0, 1, 1, 0]),
    ],
)
def test_operations_of_two_masks(operation: Any, values: list[float]) -> None:
    below, above = torch.tensor([[[0.0, 0.0, 1.0, 1.0]]]), torch.tensor([[[0.0, 1.0, 0.0, 1.0]]])
    assert composite(destination=below, source=above, operation=operation)[0, 0].tolist() == values


def test_a_mask_laid_over_another_reaches_only_what_lies_under_it() -> None:
    result = composite(destination=torch.zeros(2, 4, 4), source=torch.ones(1, 4, 4), x=3, y=2, operation="or")
    assert result.sum().item() == 2 * 2 * 1
    outside = composite(destination=torch.ones(1, 2, 2), source=torch.zeros(1, 2, 2), x=5, y=0)
    assert outside.sum().item() == 4


def test_a_feather_rises_from_each_edge() -> None:
    mask = feather(mask=torch.ones(4, 5), left=2, bottom=4)
    assert mask[0, 0].tolist() == [0.5, 1, 1, 1, 1]
    assert mask[0, :, 4].tolist() == [1, 0.75, 0.5, 0.25]


@pytest.mark.parametrize(("tapered", "white"), [(True, 13), (False, 25)])
def test_growth_is_a_diamond_or_a_square(tapered: bool, white: int) -> None:
    assert grow(mask=dot(), expand=2, tapered_corners=tapered).sum().item() == white


def test_growth_and_shrinkage_undo_each_other_away_from_edges() -> None:
    grown = grow(mask=dot(9), expand=3, tapered_corners=False)
    assert torch.equal(grow(mask=grown, expand=-3, tapered_corners=False), dot(9))


def test_shrinking_does_not_start_at_the_border() -> None:
    assert grow(mask=torch.ones(1, 5, 5), expand=-2).sum().item() == 25


def test_a_huge_growth_ends_when_all_is_white() -> None:
    assert grow(mask=dot(), expand=16384).min().item() == 1


def test_nodes_leave_the_mask_that_came_in_alone() -> None:
    mask = dot()
    grow(mask=mask, expand=1)
    feather(mask=mask, left=3)
    crop(mask=mask, width=2, height=2).fill_(9)
    assert torch.equal(mask, dot())
