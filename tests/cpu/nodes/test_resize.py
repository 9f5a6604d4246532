"""Sizes of pictures, masks and latents."""

from __future__ import annotations

import pytest
import torch

from nodes.context import NodeInputError
from nodes.resize import resized, resized_image, resized_mask, size_keeping_aspect

METHODS = ("nearest-exact", "bilinear", "area", "bicubic", "bislerp")


def random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", [*METHODS, "lanczos"])
def test_a_constant_stays_constant(method: str) -> None:
    x = torch.full((2, 3, 8, 8), 0.25)
    torch.testing.assert_close(resized(x, 12, 6, method), torch.full((2, 3, 6, 12), 0.25))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_size_gives_a_copy(method: str) -> None:
    x = random(1, 4, 5, 7)
    same = resized(x, 7, 5, method)
    assert torch.equal(same, x)
    assert same.data_ptr() != x.data_ptr()


def test_an_unknown_method_is_refused_by_name() -> None:
    with pytest.raises(NodeInputError, match="unknown upscale method 'cubic'; supported: nearest-exact"):
        resized(random(1, 1, 4, 4), 8, 8, "cubic")


def test_center_crop_keeps_the_middle_of_the_longer_side() -> None:
    x = torch.arange(8.0).reshape(1, 1, 1, 8).expand(1, 1, 4, 8)
    assert resized(x, 4, 4, "nearest-exact", "center")[0, 0, 0].tolist() == [2, 3, 4, 5]
    assert resized(x.mT, 4, 4, "nearest-exact", "center")[0, 0, :, 0].tolist() == [2, 3, 4, 5]


def test_bislerp_keeps_the_length_of_vectors_between_two_directions() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).reshape(1, 2, 1, 2)
    wide = resized(x, 8, 1, "bislerp")
    torch.testing.assert_close(wide.norm(dim=1), torch.ones(1, 1, 8))
    angles = torch.atan2(wide[0, 1, 0], wide[0, 0, 0])
    steps = angles[2:6].diff()
    assert steps.min() > 0.1
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))


def test_bislerp_of_zeros_is_zeros() -> None:
    assert torch.equal(resized(torch.zeros(1, 4, 2, 2), 6, 6, "bislerp"), torch.zeros(1, 4, 6, 6))


def test_bislerp_goes_straight_between_opposite_vectors() -> None:
    x = torch.tensor([[1.0, -1.0], [0.0, 0.0]]).reshape(1, 2, 1, 2)
    middle = resized(x, 4, 1, "bislerp")[0, 0, 0]
    torch.testing.assert_close(middle, torch.tensor([1.0, 0.5, -0.5, -1.0]))


def test_lanczos_treats_any_number_of_channels_alike() -> None:
    x = random(2, 5, 6, 9)
    alone = torch.cat([resized(x[:, i : i + 1], 18, 12, "lanczos") for i in range(5)], dim=1)
    assert torch.equal(resized(x, 18, 12, "lanczos"), alone)


def test_images_and_masks_keep_their_layout() -> None:
    assert resized_image(random(2, 4, 6, 3), 12, 8, "bilinear").shape == (2, 8, 12, 3)
    assert resized_mask(random(4, 6), 12, 8).shape == (1, 8, 12)


@pytest.mark.parametrize(
    ("asked", "given"),
    [((0, 0), (640, 480)), ((320, 0), (320, 240)), ((0, 240), (320, 240)), ((5, 6), (5, 6))],
)
def test_a_zero_side_follows_from_the_other(asked: tuple[int, int], given: tuple[int, int]) -> None:
    assert size_keeping_aspect(640, 480, *asked) == given
