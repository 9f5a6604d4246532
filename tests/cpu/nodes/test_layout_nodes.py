"""Pictures beside one another, on grounds, and batches cut anew."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nodes.image_layout import resize_and_pad, select_resolution, stitch
from nodes.rebatch import rebatch_images, rebatch_latents


def plain(value: float, height: int, width: int, total: int = 1) -> torch.Tensor:
    return torch.full((total, height, width, 3), float(value))


@pytest.mark.parametrize(
    ("direction", "shape", "first"),
    [("right", (4, 12), 0.0), ("left", (4, 12), 1.0), ("down", (6, 8), 0.0), ("up", (6, 8), 1.0)],
)
def test_the_second_picture_takes_the_height_or_width_of_the_first(
    direction: Any, shape: tuple[int, int], first: float
) -> None:
    image2 = plain(1, 8, 8) if direction in ("right", "left") else plain(1, 4, 16)
    result = stitch(image1=plain(0, 4, 8), image2=image2, direction=direction)
    assert result.shape == (1, *shape, 3)
    assert result[0, 0, 0, 0] == first


def test_pictures_of_their_own_size_are_centred_with_a_band_between() -> None:
    result = stitch(
        image1=plain(0, 4, 4, total=2),
        image2=plain(0, 2, 2),
        match_image_size=False,
        spacing_width=2,
        spacing_color="red",
    )
    assert result.shape == (2, 4, 8, 3)
    assert result[1, 0, 4:].tolist() == [[1, 0, 0]] * 4
    assert result[1, 1, 6:].tolist() == [[0, 0, 0]] * 2


def test_a_picture_without_a_second_stays_as_it_is() -> None:
    image = plain(0.5, 2, 2)
    assert stitch(image1=image) is image


def test_a_padded_picture_keeps_its_aspect() -> None:
    result = resize_and_pad(image=plain(0, 4, 8), target_width=16, target_height=16)
    assert result.shape == (1, 16, 16, 3)
    assert result[0, 4:12].unique().tolist() == [0]
    assert result[0, :4].unique().tolist() == result[0, 12:].unique().tolist() == [1]


def test_a_resolution_has_the_shape_and_the_multiple_asked_for() -> None:
    assert select_resolution() == (1024, 1024)
    width, height = select_resolution(aspect_ratio="16:9 (Widescreen)", megapixels=2.0, multiple=16)
    assert (width % 16, height % 16) == (0, 0)
    assert width / height == pytest.approx(16 / 9, rel=0.02)
    assert width * height == pytest.approx(2 * 1024**2, rel=0.02)


def test_pictures_of_one_size_share_a_batch() -> None:
    batches = rebatch_images(images=[plain(0, 2, 2, 3), plain(1, 2, 2), plain(2, 4, 4)], batch_size=[3])  # type: ignore[arg-type]
    assert [len(batch) for batch in batches] == [3, 1, 1]
    assert [batch.shape[1] for batch in batches] == [2, 2, 4]


def test_latents_keep_their_noise_and_masks_when_cut_anew() -> None:
    one = {"samples": torch.zeros(2, 4, 2, 2), "batch_index": [5, 6], "noise_mask": torch.zeros(1, 1, 16, 16)}
    two = {"samples": torch.ones(1, 4, 2, 2)}
    first, second = rebatch_latents(latents=[one, two], batch_size=[2])  # type: ignore[arg-type, list-item]
    assert (first["batch_index"], second["batch_index"]) == ([5, 6], [0])
    assert first["noise_mask"].shape == (2, 1, 16, 16)
    assert "noise_mask" not in second
    (whole,) = rebatch_latents(latents=[one, two], batch_size=[9])  # type: ignore[arg-type, list-item]
    assert whole["noise_mask"].mean(dim=(1, 2, 3)).tolist() == [0, 0, 1]
