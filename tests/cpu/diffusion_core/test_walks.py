"""How a request begins and ends: partial walks, start images, leftover noise, masks, adapted latents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.api import LoraPatch, SampleRequest, SamplingOverride
from runtime.diffusion.engine import Engine
from runtime.diffusion.noise import start_noise
from runtime.diffusion.samplers import NAMES
from runtime.platform.errors import RuntimeFault, Unsupported
from tests.cpu.diffusion_core.tiny import cond, engine, model_of, request

F64 = torch.float64


@pytest.fixture(scope="module")
def runner() -> Iterator[Engine]:
    made = engine(F64)
    yield made
    made.close()


def run(runner: Engine, one: SampleRequest) -> torch.Tensor:
    latent: torch.Tensor = runner.submit(one).wait(60).latent
    return latent


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_every_sampler_runs_on_a_network(name: str, folder: Path, runner: Engine) -> None:
    one = request(name, model_of(folder), F64, sampler=name, steps=3)
    assert run(runner, one).isfinite().all()


def test_two_halves_with_leftover_noise_make_the_whole(folder: Path, runner: Engine) -> None:
    whole = request("whole", model_of(folder), F64, steps=8, seed=3)
    first = replace(whole, id="first", end_step=5, full_denoise=False)
    begun = run(runner, first)
    second = replace(whole, id="second", latent=begun, start_step=5, add_noise=False)
    assert close(run(runner, second), run(runner, whole))


def test_cutting_a_walk_short_ends_clean_unless_asked_not_to(unet_folder: Path, runner: Engine) -> None:
    whole = request("whole", model_of(unet_folder), F64, steps=8)
    noisy = runner.submit(replace(whole, end_step=4, full_denoise=False)).wait(60)
    clean = runner.submit(replace(whole, end_step=4)).wait(60)
    assert close(clean.latent, clean.denoised)
    assert close(clean.denoised, noisy.denoised)
    assert not close(noisy.latent, noisy.denoised)


def test_given_sigmas_and_noise_replace_the_drawn_ones(folder: Path, runner: Engine) -> None:
    model = model_of(folder)
    plain = request("plain", model, F64, steps=5, seed=11)
    sigmas = runner.sigmas(model, "simple", 5, 1.0)
    noise = start_noise(plain.latent.shape, 11)
    told = replace(plain, id="told", sigmas=sigmas, noise=noise, steps=99, seed=0)
    assert close(run(runner, plain), run(runner, told))


def test_sigmas_of_a_part_are_the_end_of_a_longer_walk(folder: Path, runner: Engine) -> None:
    model = model_of(folder)
    assert torch.equal(runner.sigmas(model, "simple", 4, 0.5), runner.sigmas(model, "simple", 8, 1.0)[-5:])
    assert runner.sigmas(model, "simple", 4, 0.0).tolist() == []


def test_nothing_to_do_returns_the_latent(folder: Path, runner: Engine) -> None:
    given = request("one", model_of(folder), F64)
    given = replace(given, latent=torch.randn_like(given.latent))
    for change in ({"denoise": 0.0}, {"start_step": 4}, {"end_step": 0}, {"sigmas": torch.tensor([])}):
        assert torch.equal(run(runner, replace(given, **change)), given.latent)


def test_a_start_image_matters_the_more_the_less_is_denoised(folder: Path, runner: Engine) -> None:
    given = request("one", model_of(folder), F64, steps=4, cfg=1.0)
    picture = torch.randn(given.latent.shape, dtype=F64, generator=torch.Generator().manual_seed(4))
    given = replace(given, latent=picture)
    little, much = (run(runner, replace(given, denoise=part)) for part in (0.1, 0.9))
    assert float((little - picture).norm()) < float((much - picture).norm())


def test_outside_of_a_mask_the_picture_stays(folder: Path, runner: Engine) -> None:
    given = request("one", model_of(folder), F64, steps=4)
    picture = torch.randn(given.latent.shape, dtype=F64, generator=torch.Generator().manual_seed(4))
    mask = torch.zeros(1, 8, 8)
    mask[..., 4:] = 1
    for name in ("euler", "ddim"):
        result = run(runner, replace(given, latent=picture, noise_mask=mask, sampler=name))
        assert torch.allclose(result[..., :4], picture[..., :4], atol=1e-5)
        assert not torch.allclose(result[..., 4:], picture[..., 4:], atol=1e-2)


def test_an_empty_latent_fits_itself_to_the_model(sd3_folder: Path, runner: Engine) -> None:
    empty = torch.zeros(2, 4, 4, 6)
    result = run(runner, request("one", model_of(sd3_folder), F64, latent=empty, latent_factor=16))
    assert result.shape == (2, 16, 8, 12)
    assert result.dtype == torch.float32


def test_batch_index_draws_the_named_noises(unet_folder: Path, runner: Engine) -> None:
    model = model_of(unet_folder)
    pair = torch.zeros(2, 4, 8, 8, dtype=F64)
    both = run(runner, request("both", model, F64, latent=pair, batch_index=(0, 3)))
    last = run(runner, request("last", model, F64, batch_index=(3,)))
    assert close(both[1:], last)


def test_a_model_may_be_told_another_shift_and_still_share_a_forward(sd3_folder: Path) -> None:
    model = model_of(sd3_folder)
    shifted = replace(model, sampling=SamplingOverride(shift=6.0))
    sizes: list[int] = []
    runner = engine(F64, on_forward=sizes.append)
    pair = [request("a", model, F64, steps=6), request("b", shifted, F64, steps=6)]
    alone = [run(runner, one) for one in pair]
    sizes.clear()
    handles = [runner.submit(one) for one in pair]
    for handle, other in zip(handles, alone, strict=True):
        assert close(handle.wait(60).latent, other)
    assert not close(*alone)
    assert 4 in sizes
    runner.close()


def test_a_prediction_override_changes_an_eps_model_only(
    unet_folder: Path, sd3_folder: Path, runner: Engine
) -> None:
    told = SamplingOverride(prediction="v")
    unet = request("one", model_of(unet_folder), F64)
    assert not close(run(runner, unet), run(runner, replace(unet, model=replace(unet.model, sampling=told))))
    flow = replace(model_of(sd3_folder), sampling=told)
    with pytest.raises(Unsupported, match="predicts flow"):
        run(runner, request("two", flow, F64))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sampler": "eulr"}, "unknown sampler 'eulr'; supported: "),
    ({"scheduler": "linear"}, "unknown scheduler 'linear'; supported: simple"),
    ({"steps": 0}, "takes 1 to"),
    ({"steps": 10**9}, "takes 1 to"),
    ({"denoise": 1e-9}, "takes 1 to"),
    ({"latent": torch.zeros(4, 8, 8)}, "a latent is"),
    ({"latent": torch.ones(1, 3, 8, 8)}, "3 channels, the model takes 4"),
    ({"latent": torch.zeros(0, 4, 8, 8)}, "not empty"),
    ({"sigmas": torch.tensor([1.0, 0.0, 1.0, 0.0])}, "only the last"),
    ({"sigmas": torch.tensor([float("nan"), 0.0])}, "finite"),
    ({"noise": torch.zeros(1, 4, 4, 4)}, "the noise is"),
    ({"batch_index": (1, 2)}, "batch_index"),
    ({"positive": [[1, {}]]}, "a conditioning is"),
    ({"denoise": float("nan")}, "denoise"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_bad_input_fails_with_a_sentence_and_hurts_nobody(
    change: dict[str, Any], message: str, unet_folder: Path, runner: Engine
) -> None:
    good = request("good", model_of(unet_folder), F64)
    handle = runner.submit(replace(good, id="bad", **change))
    other = runner.submit(good)
    with pytest.raises(RuntimeFault, match=message):
        handle.wait(60)
    assert other.wait(60).latent.isfinite().all()


def test_a_missing_lora_fails_with_a_sentence(unet_folder: Path, runner: Engine, tmp_path: Path) -> None:
    model = model_of(unet_folder).with_lora(LoraPatch(tmp_path / "none.safetensors", 1.0))
    with pytest.raises(RuntimeFault):
        run(runner, request("one", model, F64))


def test_repeated_levels_count_once(unet_folder: Path, runner: Engine) -> None:
    one = request("one", model_of(unet_folder), F64, sampler="lms", sigmas=torch.tensor([4.0, 2.0, 1.0, 0.0]))
    again = replace(one, id="again", sigmas=torch.tensor([4.0, 4.0, 2.0, 2.0, 1.0, 0.0]))
    assert close(run(runner, one), run(runner, again))


def test_regions_inpainting_and_batches_merge_as_they_run_alone(folder: Path) -> None:
    model = model_of(folder)
    mask = torch.zeros(1, 16, 16)
    mask[..., :8] = 1
    left, right = cond(1, F64, mask=mask), cond(2, F64, area=(8, 8, 0, 0), strength=0.5)
    base = request("base", model, F64, steps=5)
    requests = [
        replace(base, id="regions", positive=left + right),
        replace(base, id="batch", latent=base.latent.expand(3, -1, -1, -1), sampler="dpmpp_2m"),
        replace(base, id="mask", latent=base.latent + 0.3, noise_mask=mask, denoise=0.7),
        replace(base, id="ranges", positive=cond(3, F64, end_percent=0.4) + cond(4, F64, start_percent=0.4)),
        replace(base, id="unguided", sampler="euler_cfg_pp", cfg=1.0),
    ]
    runner = engine(F64)
    alone = [run(runner, one) for one in requests]
    before = runner.stats().forwards
    handles = [runner.submit(one) for one in requests]
    for handle, other in zip(handles, alone, strict=True):
        assert close(handle.wait(60).latent, other)
    assert runner.stats().forwards - before < before / 2
    runner.close()
