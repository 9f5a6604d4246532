"""What guidance, regions, masks and previews make of answers, with conditionings that say a number."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.diffusion.api import Conditioning, Control, ControlRef
from runtime.diffusion.cond import Box, Surroundings, regions, with_areas_of
from runtime.diffusion.families.base import LatentFormat
from runtime.diffusion.guidance import Eval, Repaint, Sides, guided, inpainted
from runtime.diffusion.preview import PreviewClock, latent_to_rgb
from runtime.diffusion.samplers import Answer, Sampling, Wish
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.platform.errors import Unsupported

SCHEDULE = NoiseSchedule.discrete()
FORMAT = LatentFormat(4, 8)


def says(number: float, **told: Any) -> list[Any]:
    return [torch.full((1, 1, 1), number), told]


def around(batch: int = 1, height: int = 16, width: int = 24) -> Surroundings:
    return Surroundings(torch.zeros(batch, 4, height, width), FORMAT, SCHEDULE, torch.float32)


def one_wish(x: torch.Tensor, sigma: float) -> Sampling:
    answer = yield Wish(x, sigma, 0)
    assert isinstance(answer, Answer)
    return answer.denoised


def ask(
    positive: Conditioning,
    negative: Conditioning,
    scale: float = 1.0,
    *,
    sigma: float = 1.0,
    place: Surroundings | None = None,
) -> tuple[torch.Tensor, list[Eval]]:
    """What one evaluation comes to when each conditioning answers with its number."""
    place = place or around()
    sides = Sides(regions(positive, place), regions(negative, place), scale)
    course = guided(one_wish(place.latent, sigma), sides, keeps_unguided=False)
    evals = next(course)
    answers = [
        torch.stack(
            [torch.full_like(x, float(cond.tokens)) for x, cond in zip(one.x, one.conds, strict=True)]
        )
        for one in evals
    ]
    try:
        course.send(answers)
    except StopIteration as end:
        return end.value, evals
    raise AssertionError("one wish, one answer")


def test_guidance_goes_beyond_the_positive_away_from_the_negative() -> None:
    denoised, evals = ask([says(3)], [says(1)], 4.0)
    assert denoised.unique().tolist() == [1 + 4 * 2]
    assert len(evals) == 2


def test_a_scale_of_one_does_not_ask_for_the_negative() -> None:
    denoised, evals = ask([says(3)], [says(1)], 1.0)
    assert denoised.unique().tolist() == [3]
    assert len(evals) == 1


def test_several_conditionings_are_averaged_by_strength() -> None:
    denoised, _ = ask([says(1, strength=3.0), says(5, strength=1.0)], [])
    assert denoised.unique().tolist() == [2]


def test_a_single_conditioning_does_not_lose_by_its_strength() -> None:
    assert ask([says(3, strength=0.25)], [])[0].unique().tolist() == [3]


def test_nobody_answering_is_zero() -> None:
    assert ask([says(3, start_percent=0.9)], [], sigma=10.0)[0].unique().tolist() == [0]


def test_percentages_say_when_a_conditioning_counts() -> None:
    both = [says(1, end_percent=0.5), says(5, start_percent=0.5)]
    assert ask(both, [], sigma=10.0)[0].unique().tolist() == [1]
    assert ask(both, [], sigma=0.5)[0].unique().tolist() == [5]


def test_a_mask_says_where_a_conditioning_counts() -> None:
    left = torch.zeros(1, 16, 24)
    left[..., :12] = 1
    denoised, evals = ask([says(1, mask=left), says(5, mask=1 - left)], [])
    assert denoised[..., :12].unique().tolist() == [1]
    assert denoised[..., 12:].unique().tolist() == [5]
    assert all(one.x.shape[-1] == 24 for one in evals)


def test_a_mask_of_another_size_is_fitted_and_scaled_by_its_strength() -> None:
    halves = torch.ones(1, 32, 48)
    denoised, _ = ask([says(1, mask=halves, mask_strength=0.5), says(4)], [])
    assert torch.allclose(denoised, torch.full_like(denoised, (0.5 * 1 + 4) / 1.5))


def test_mask_bounds_cut_what_the_network_sees() -> None:
    mask = torch.zeros(1, 16, 24)
    mask[:, 4:14, 6:18] = 1
    denoised, evals = ask([says(1, mask=mask, set_area_to_bounds=True)], [])
    assert evals[0].x.shape[-2:] == (10, 12)
    assert denoised[..., 4:14, 6:18].unique().tolist() == [1]
    assert denoised[..., :4, :].unique().tolist() == [0]


def test_an_area_is_in_units_of_eight_pixels_and_is_feathered_inside() -> None:
    denoised, evals = ask([says(1, area=(16, 12, 0, 12)), says(0)], [])
    assert evals[0].x.shape[-2:] == (16, 12)
    assert denoised[..., :12].unique().tolist() == [0]
    row = denoised[0, 0, 3, 12:].tolist()
    weights = [step / 8 for step in range(1, 9)] + [1.0] * 4
    assert row == pytest.approx([weight / (1 + weight) for weight in weights])


def test_an_area_in_percent() -> None:
    (region,) = regions([says(1, area=("percentage", 0.5, 0.25, 0.5, 0.75))], around())
    assert region.box == Box(top=8, left=18, height=8, width=6)


def test_areas_follow_the_models_cell_size() -> None:
    place = Surroundings(torch.zeros(1, 8, 16, 16), LatentFormat(8, 4), SCHEDULE, torch.float32)
    (region,) = regions([says(1, area=(4, 4, 2, 4))], place)
    assert region.box == Box(top=4, left=8, height=8, width=8)


def test_an_area_outside_of_the_picture_is_refused() -> None:
    with pytest.raises(Unsupported, match="outside"):
        regions([says(1, area=(8, 8, 99, 0))], around())


def test_an_area_of_one_side_is_asked_of_the_other_too() -> None:
    place = around()
    whole, half, corner = says(1), says(2, area=(16, 12, 0, 0)), says(7, area=(8, 8, 0, 0), strength=2.0)
    positive, negative = regions([corner], place), regions([whole, half], place)
    matched = with_areas_of(negative, positive)
    assert [region.box for region in matched] == [None, Box(0, 0, 16, 12), Box(0, 0, 8, 8)]
    assert float(matched[-1].conds[0].tokens) == 2
    assert matched[-1].weight is positive[0].weight
    assert with_areas_of(matched, positive) == matched
    assert with_areas_of((), positive) == ()


def test_each_image_of_a_batch_takes_its_own_row() -> None:
    tokens = torch.tensor([1.0, 2.0]).view(2, 1, 1)
    denoised, _ = ask([[tokens, {}]], [], place=around(batch=3))
    assert denoised[:, 0, 0, 0].tolist() == [1, 2, 1]


def test_unknown_keys_reach_the_family() -> None:
    (region,) = regions([says(1, width=640, strength=2.0, guidance=3.5)], around())
    assert region.conds[0].extra == {"width": 640}
    assert region.conds[0].guidance == 3.5


def test_what_is_not_a_conditioning_is_refused() -> None:
    with pytest.raises(Unsupported, match="list of"):
        regions([["text", {}]], around())


def test_an_inpainting_model_sees_mask_and_picture() -> None:
    mask = torch.zeros(1, 1, 128, 192)
    mask[..., 96:] = 1
    (region,) = regions(
        [says(1, concat_latent_image=torch.full((1, 4, 16, 24), 2.0), concat_mask=mask)], around(batch=2)
    )
    concat = region.conds[1].concat
    assert concat is not None
    assert concat.shape == (1, 5, 16, 24)
    assert concat[0, 0, 0, :12].unique().tolist() == [0]
    assert concat[0, 1:].unique().tolist() == [2]


def test_controls_chain_and_keep_to_their_levels(tmp_path: Any) -> None:
    net = ControlRef(tmp_path, "sd15")
    first = Control(net, torch.zeros(1, 64, 64, 3), 1.0, end_percent=0.5)
    silent = Control(net, torch.ones(1, 64, 64, 3), 0.0, previous=first)
    second = Control(net, torch.ones(1, 64, 64, 3), 0.5, start_percent=0.2, previous=silent)
    (region,) = regions([says(1, control=second)], around())
    strengths = {
        sigma: [control.strength for control in region.conds_at(sigma)[0].controls]
        for sigma in (14.0, 3.0, 0.5)
    }
    assert strengths == {14.0: [1.0], 3.0: [1.0, 0.5], 0.5: [0.5]}
    assert region.conds_at(3.0)[0].controls[0].hint.shape == (1, 3, 128, 192)


def test_inpainting_shows_the_original_with_noise_and_keeps_it() -> None:
    mask = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    latent, noise = torch.full((1, 1, 1, 2), 5.0), torch.full((1, 1, 1, 2), 1.0)
    repaint = Repaint(mask, latent, lambda sigma: latent + noise * sigma)
    course = inpainted(one_wish(torch.zeros(1, 1, 1, 2), 2.0), repaint)
    assert next(course).x.flatten().tolist() == [0, 7]
    with pytest.raises(StopIteration) as end:
        course.send(Answer(torch.full((1, 1, 1, 2), 3.0)))
    assert end.value.value.flatten().tolist() == [3, 5]


def test_a_preview_is_the_first_image_in_colours() -> None:
    latent_format = LatentFormat(2, 8, rgb=torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]), rgb_bias=torch.zeros(3))
    latent = torch.stack([torch.ones(3, 5), -torch.ones(3, 5)])[None]
    rgb = latent_to_rgb(latent, latent_format)
    assert rgb is not None
    assert rgb.shape == (3, 5, 3)
    assert rgb[0, 0].tolist() == [255, 128, 0]
    assert latent_to_rgb(latent, LatentFormat(2, 8)) is None


def test_previews_keep_a_distance() -> None:
    clock = PreviewClock()
    assert [clock.is_due(now) for now in (0.0, 0.1, 0.16, 0.2, 0.5)] == [True, False, True, False, True]
