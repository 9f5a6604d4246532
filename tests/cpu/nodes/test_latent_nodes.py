"""Latents made, sized, batched and edited."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nodes.context import NodeInputError
from nodes.latent import (
    batch,
    batch_seed_behavior,
    empty_latent,
    empty_latent_sd3,
    from_batch,
    repeat_batch,
    set_noise_mask,
    upscale,
    upscale_by,
)
from nodes.latent_edit import (
    add,
    blend,
    composite,
    composite_masked,
    concat,
    crop,
    cut,
    flip,
    interpolate,
    multiply,
    rotate,
    subtract,
)


def numbered(total: int = 4, channels: int = 4, height: int = 8, width: int = 8) -> dict[str, Any]:
    """Item k of the batch is filled with k."""
    return {"samples": torch.arange(float(total)).reshape(-1, 1, 1, 1).repeat(1, channels, height, width)}


def constant(value: float, **size: int) -> dict[str, Any]:
    return {"samples": numbered(1, **size)["samples"] + value}


def firsts(latent: dict[str, Any]) -> list[float]:
    return latent["samples"][:, 0, 0, 0].tolist()


def test_an_empty_latent_says_how_many_pixels_its_cells_stand_for() -> None:
    latent = empty_latent(width=64, height=48, batch_size=2)
    assert latent["samples"].shape == (2, 4, 6, 8)
    assert not latent["samples"].any()
    assert latent["downscale_ratio_spacial"] == 8
    assert empty_latent_sd3(width=64, height=48)["samples"].shape == (1, 16, 6, 8)


@pytest.mark.parametrize(
    ("size", "cells"),
    [
        ((128, 256), (32, 16)),
        ((0, 256), (32, 64)),
        ((256, 0), (16, 32)),
        ((8, 8), (8, 8)),
        ((0, 0), (16, 32)),
    ],
)
def test_an_upscaled_latent_has_the_size_asked_for(size: tuple[int, int], cells: tuple[int, int]) -> None:
    latent = numbered(1, 4, 16, 32)
    result = upscale(samples=latent, upscale_method="bislerp", width=size[0], height=size[1])
    assert result["samples"].shape[-2:] == cells


def test_an_upscaled_latent_keeps_what_else_it_carries() -> None:
    latent = numbered(1) | {"noise_mask": torch.ones(1, 1, 4, 4)}
    result = upscale_by(samples=latent, upscale_method="area", scale_by=1.5)
    assert result["samples"].shape[-2:] == (12, 12)
    assert result["noise_mask"] is latent["noise_mask"]


def test_items_of_a_batch_keep_their_place_in_it() -> None:
    result = from_batch(samples=numbered(), batch_index=1, length=2)
    assert firsts(result) == [1, 2]
    assert result["batch_index"] == [1, 2]
    again = from_batch(samples=result, batch_index=-1, length=5)
    assert firsts(again) == [2]
    assert again["batch_index"] == [2]


def test_an_index_beyond_the_batch_means_its_last_item() -> None:
    assert firsts(from_batch(samples=numbered(), batch_index=99)) == [3]
    assert firsts(from_batch(samples=numbered(), batch_index=-99)) == [0]


def test_masks_of_a_batch_go_with_their_items() -> None:
    masks = torch.arange(2.0).reshape(2, 1, 1, 1)
    result = from_batch(samples=numbered() | {"noise_mask": masks}, batch_index=1, length=3)
    assert result["noise_mask"].flatten().tolist() == [1, 0, 1]


def test_copies_in_a_batch_get_noise_of_their_own() -> None:
    result = repeat_batch(samples=numbered(2) | {"batch_index": [3, 5]}, amount=3)
    assert firsts(result) == [0, 1, 0, 1, 0, 1]
    assert result["batch_index"] == [3, 5, 6, 8, 9, 11]


def test_a_fixed_seed_gives_every_item_the_noise_of_the_first() -> None:
    latent = numbered(3) | {"batch_index": [4, 5, 6]}
    assert batch_seed_behavior(samples=latent, seed_behavior="fixed")["batch_index"] == [4, 4, 4]
    assert "batch_index" not in batch_seed_behavior(samples=latent, seed_behavior="random")


def test_two_batches_become_one() -> None:
    result = batch(samples1=numbered(2), samples2=numbered(2, 4, 4, 4))
    assert result["samples"].shape == (4, 4, 8, 8)
    assert result["batch_index"] == [0, 1, 0, 1]


def test_a_noise_mask_has_a_batch_and_a_channel() -> None:
    assert set_noise_mask(samples=numbered(), mask=torch.ones(6, 5))["noise_mask"].shape == (1, 1, 6, 5)


def test_a_quarter_turn_is_clockwise_and_four_are_none() -> None:
    latent = {"samples": torch.arange(4.0).reshape(1, 1, 2, 2)}
    turned = rotate(samples=latent, rotation="90 degrees")
    assert turned["samples"].flatten().tolist() == [2, 0, 3, 1]
    for _ in range(3):
        turned = rotate(samples=turned, rotation="90 degrees")
    assert torch.equal(turned["samples"], latent["samples"])


def test_flips_are_along_their_axis() -> None:
    latent = {"samples": torch.arange(4.0).reshape(1, 1, 2, 2)}
    assert flip(samples=latent, flip_method="x-axis: vertically")["samples"].flatten().tolist() == [
        2,
        3,
        0,
        1,
    ]
    assert flip(samples=latent, flip_method="y-axis: horizontally")["samples"].flatten().tolist() == [
        1,
        0,
        3,
        2,
    ]


def test_a_crop_moves_inwards_rather_than_become_nothing() -> None:
    latent = {"samples": torch.arange(16.0).expand(1, 1, 16, 16)}
    result = crop(samples=latent, width=64, height=64, x=1000, y=16)
    assert result["samples"].shape == (1, 1, 8, 8)
    assert result["samples"][0, 0, 0, 0] == 8


def test_a_composite_covers_what_lies_under_it() -> None:
    result = composite(samples_to=constant(0), samples_from=constant(1, height=4, width=4), x=16, y=32)[
        "samples"
    ]
    assert result[0, 0, 4:, 2:6].unique().tolist() == [1]
    assert result.sum() == 4 * 4 * 4


def test_a_feathered_composite_fades_on_inner_edges_only() -> None:
    result = composite(
        samples_to=constant(0), samples_from=constant(1, height=8, width=4), x=0, y=0, feather=16
    )["samples"][0, 0, 3]
    assert result.tolist() == [1, 1, 1, 0.5, 0, 0, 0, 0]


def test_a_composite_outside_the_latent_changes_nothing() -> None:
    below = numbered(1)
    assert torch.equal(
        composite(samples_to=below, samples_from=constant(1), x=800)["samples"], below["samples"]
    )


def test_a_masked_composite_mixes_by_the_mask() -> None:
    result = composite_masked(
        destination=constant(0), source=constant(1), mask=torch.full((1, 16, 16), 0.25), x=32, y=0
    )["samples"]
    assert result[0, 0, 0].tolist() == [0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25]


def test_arithmetic_repeats_the_shorter_batch() -> None:
    one, two = numbered(4), {"samples": numbered(2)["samples"] + 1}
    assert firsts(add(samples1=one, samples2=two)) == [1, 3, 3, 5]
    assert firsts(subtract(samples1=one, samples2=two)) == [-1, -1, 1, 1]
    assert firsts(multiply(samples=one, multiplier=-2)) == [0, -2, -4, -6]


def test_a_blend_counts_the_share_of_the_first() -> None:
    assert firsts(blend(samples1=constant(4), samples2=constant(8), blend_factor=0.25)) == [7]


def test_an_interpolation_keeps_the_length_of_vectors() -> None:
    one = {"samples": torch.tensor([3.0, 0.0]).reshape(1, 2, 1, 1)}
    two = {"samples": torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1)}
    result = interpolate(samples1=one, samples2=two, ratio=0.5)["samples"]
    assert result.norm().item() == pytest.approx(2)
    assert torch.equal(interpolate(samples1=one, samples2=two, ratio=1.0)["samples"], one["samples"])


@pytest.mark.parametrize(
    ("dim", "shape", "first"), [("x", (8, 12), 0), ("-x", (8, 12), 1), ("-y", (16, 8), 1)]
)
def test_concat_puts_latents_side_by_side(dim: Any, shape: tuple[int, int], first: float) -> None:
    other = constant(1, width=4) if dim.endswith("x") else constant(1)
    result = concat(samples1=constant(0), samples2=other, dim=dim)["samples"]
    assert result.shape[-2:] == shape
    assert result[0, 0, 0, 0] == first


def test_a_cut_counts_from_either_end() -> None:
    latent = {"samples": torch.arange(8.0).expand(1, 1, 8, 8)}
    assert cut(samples=latent, dim="x", index=-3, amount=2)["samples"][0, 0, 0].tolist() == [5, 6]
    assert cut(samples=latent, dim="x", index=6, amount=9)["samples"][0, 0, 0].tolist() == [6, 7]


@pytest.mark.parametrize("node", [add, blend, interpolate])
def test_latents_of_different_models_do_not_mix(node: Any) -> None:
    with pytest.raises(NodeInputError, match=r"4 and 16 channels|16 and 4 channels"):
        node(samples1=constant(0), samples2=constant(0, channels=16))


def test_nodes_leave_the_latent_that_came_in_alone() -> None:
    latent = numbered()
    kept = latent["samples"].clone()
    composite(samples_to=latent, samples_from=constant(9))
    repeat_batch(samples=latent, amount=2)
    from_batch(samples=latent)["samples"].fill_(9)
    crop(samples=latent, width=64, height=64)["samples"].fill_(9)
    assert list(latent) == ["samples"]
    assert torch.equal(latent["samples"], kept)
