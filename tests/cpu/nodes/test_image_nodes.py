"""Pictures made, scaled, turned, joined and filtered."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nodes.context import NodeInputError
from nodes.image import (
    batch,
    crop,
    empty,
    flip,
    from_batch,
    invert,
    pad_for_outpaint,
    repeat_batch,
    rotate,
    scale,
    scale_by,
    scale_to_max_dimension,
    scale_to_total_pixels,
    size,
)
from nodes.image_filter import blend, blur, composite_masked, join_alpha, sharpen, split_alpha


def random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def test_a_colour_is_given_as_red_green_blue() -> None:
    image = empty(width=3, height=2, batch_size=2, color=0xFF8000)
    assert size(image=image) == (3, 2, 2)
    torch.testing.assert_close(image[0, 0, 0], torch.tensor([1.0, 128 / 255, 0.0]))


def test_inverting_twice_gives_the_picture_back() -> None:
    image = random(1, 4, 4, 3)
    torch.testing.assert_close(invert(image=invert(image=image)), image)


@pytest.mark.parametrize(
    ("result", "shape"),
    [
        (scale(image=random(1, 8, 16, 3), width=0, height=4), (4, 8)),
        (scale(image=random(1, 8, 16, 3), width=6, height=6, crop="center"), (6, 6)),
        (scale_by(image=random(1, 8, 16, 3), upscale_method="lanczos", scale_by=1.5), (12, 24)),
        (scale_to_max_dimension(image=random(1, 8, 16, 3), largest_size=10), (5, 10)),
        (scale_to_total_pixels(image=random(1, 128, 256, 3), megapixels=0.01, resolution_steps=8), (72, 144)),
    ],
)
def test_a_scaled_picture_has_the_size_asked_for(result: torch.Tensor, shape: tuple[int, int]) -> None:
    assert result.shape[1:3] == shape


def test_the_second_picture_of_a_batch_takes_the_size_and_channels_of_both() -> None:
    result = batch(image1=random(1, 8, 8, 3), image2=random(2, 4, 4, 4))
    assert result.shape == (3, 8, 8, 4)
    assert result[0, ..., 3].unique().tolist() == [1]


def test_pictures_without_a_common_form_are_refused() -> None:
    with pytest.raises(NodeInputError, match="1 and 3 channels"):
        batch(image1=random(1, 4, 4, 1), image2=random(1, 4, 4, 3))


def test_parts_and_copies_of_a_batch() -> None:
    image = random(3, 2, 2, 3)
    assert torch.equal(from_batch(image=image, batch_index=-2, length=9), image[1:])
    assert torch.equal(repeat_batch(image=image, amount=2), torch.cat((image, image)))


def test_turns_and_flips() -> None:
    image = torch.arange(4.0).reshape(1, 2, 2, 1)
    assert rotate(image=image, rotation="90 degrees").flatten().tolist() == [2, 0, 3, 1]
    assert flip(image=image).flatten().tolist() == [2, 3, 0, 1]
    assert flip(image=image, flip_method="y-axis: horizontally").flatten().tolist() == [1, 0, 3, 2]


def test_a_crop_outside_the_picture_is_its_last_pixel() -> None:
    image = random(1, 4, 4, 3)
    assert torch.equal(crop(image=image, width=2, height=2, x=99, y=99), image[:, 3:, 3:])
    assert torch.equal(crop(image=image, width=2, height=3, x=1, y=0), image[:, 0:3, 1:3])


def test_a_padded_picture_is_grey_outside_and_its_mask_fades_inside() -> None:
    image = torch.ones(1, 20, 20, 3)
    padded, mask = pad_for_outpaint(image=image, left=8, feathering=4)
    assert padded.shape == (1, 20, 28, 3)
    assert padded[0, :, :8].unique().tolist() == [0.5]
    assert mask[0, 0, :8].unique().tolist() == [1]
    assert mask[0, 0, 8:13].tolist() == [1, 0.5625, 0.25, 0.0625, 0]
    assert not mask[0, :, 13:].any()


def test_a_picture_too_small_to_fade_keeps_a_hard_edge() -> None:
    _, mask = pad_for_outpaint(image=torch.ones(1, 8, 8, 3), top=8, feathering=40)
    assert mask[0].sum() == 64


@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("normal", 0.6),
        ("multiply", 0.12),
        ("screen", 0.68),
        ("overlay", 0.24),
        ("soft_light", 0.2 + 0.2 * (0.2 * (0.2 * 16 - 12) + 4 - 1) * 0.2),
        ("difference", 0.0),
    ],
)
def test_blend_modes(mode: Any, value: float) -> None:
    result = blend(
        image1=torch.full((1, 2, 2, 3), 0.2),
        image2=torch.full((1, 2, 2, 3), 0.6),
        blend_factor=1.0,
        blend_mode=mode,
    )
    assert result[0, 0, 0, 0].item() == pytest.approx(value, abs=1e-4)


def test_a_blur_keeps_the_brightness_and_a_sharpening_undoes_nothing_on_a_plain() -> None:
    image = random(1, 32, 32, 3)
    soft = blur(image=image, blur_radius=3, sigma=2.0)
    assert soft.std() < image.std() / 2
    assert soft.mean().item() == pytest.approx(image.mean().item(), abs=0.02)
    plain = torch.full((1, 8, 8, 3), 0.5)
    torch.testing.assert_close(sharpen(image=plain, sharpen_radius=5), plain)


def test_a_blur_wider_than_the_picture_still_works() -> None:
    assert blur(image=random(1, 4, 4, 3), blur_radius=31).shape == (1, 4, 4, 3)


def test_a_masked_composite_mixes_by_the_mask() -> None:
    result = composite_masked(
        destination=torch.zeros(2, 8, 8, 3),
        source=torch.ones(1, 4, 4, 3),
        x=6,
        y=2,
        mask=torch.full((1, 2, 2), 0.5),
    )
    assert result[1, 2:6, 6:].unique().tolist() == [0.5]
    assert result.sum().item() == 2 * 4 * 2 * 3 * 0.5


def test_alpha_is_the_inverse_of_the_mask_and_comes_back() -> None:
    image, mask = random(1, 4, 4, 3), random(1, 4, 4)
    joined = join_alpha(image=image, alpha=mask)
    torch.testing.assert_close(joined[..., 3], 1 - mask)
    colours, again = split_alpha(image=joined)
    assert torch.equal(colours, image)
    torch.testing.assert_close(again, mask)
    assert not split_alpha(image=image)[1].any()
