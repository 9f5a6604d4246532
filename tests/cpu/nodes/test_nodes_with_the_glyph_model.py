"""The sampling, latent and VAE nodes on the real runtime with the embedded model; texts are left empty."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from app.events import Event, NodePreview, NodeProgress
from app.graph.context import JobNodeContext
from nodes.custom_sampling import cfg_guider, random_noise, sample_advanced
from nodes.latent import empty_latent, from_batch, set_noise_mask
from nodes.loaders import load_checkpoint
from nodes.output import preview_image
from nodes.sampling import k_sampler, k_sampler_advanced
from nodes.sigmas import basic, split
from nodes.vae import decode, decode_tiled, encode, encode_for_inpaint
from runtime.diffusion.engine import Engine

torch.set_num_threads(1)

STEPS = 4
SIZE = {"width": 64, "height": 64}
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(language_models=dict, device="cpu")
    yield engine
    engine.close()


@pytest.fixture
def glyph(context_over: Any, engine: Engine) -> Any:
    return context_over(None, engine)


@pytest.fixture
def parts(glyph: JobNodeContext) -> Any:
    return load_checkpoint(glyph, ckpt_name="glyph")


@pytest.fixture
def common(parts: Any) -> dict[str, Any]:
    """Two different conditionings in the shape of the model's text encoder."""

    def told(seed: int) -> list[list[Any]]:
        generator = torch.Generator().manual_seed(seed)
        tokens, pooled = (
            torch.randn(1, 16, 576, generator=generator),
            torch.randn(1, 576, generator=generator),
        )
        return [[tokens, {"pooled_output": pooled}]]

    return {"model": parts[0], "cfg": 3.0, "positive": told(1), "negative": told(2)}


async def test_an_empty_latent_of_64_pixels_becomes_a_picture_of_64_pixels(
    glyph: JobNodeContext, parts: Any, common: dict[str, Any], published: list[Event]
) -> None:
    latent = await k_sampler(glyph, **common, seed=1, steps=STEPS, latent_image=empty_latent(**SIZE))
    image = await decode(glyph, samples=latent, vae=parts[2])
    assert image.shape == (1, 64, 64, 3)
    assert 0 <= image.min() < image.max() <= 1
    steps = [event.value for event in published if isinstance(event, NodeProgress)]
    assert steps == list(range(1, STEPS + 1))
    assert any(isinstance(event, NodePreview) for event in published)
    result = preview_image(glyph, images=image)
    assert result.ui is not None
    assert len(result.ui["images"]) == 1


async def test_two_parts_of_a_run_are_the_run(glyph: JobNodeContext, common: dict[str, Any]) -> None:
    whole = await k_sampler(glyph, **common, seed=2, steps=STEPS, latent_image=empty_latent(**SIZE))
    first = await k_sampler_advanced(
        glyph, **common, noise_seed=2, steps=STEPS, latent_image=empty_latent(**SIZE), end_at_step=2,
        return_with_leftover_noise="enable",
    )  # fmt: skip
    second = await k_sampler_advanced(
        glyph, **common, add_noise="disable", steps=STEPS, latent_image=first, start_at_step=2
    )
    torch.testing.assert_close(second["samples"], whole["samples"], **CLOSE)


async def test_sampling_in_parts_is_a_k_sampler(glyph: JobNodeContext, common: dict[str, Any]) -> None:
    whole = await k_sampler(glyph, **common, seed=3, steps=STEPS, latent_image=empty_latent(**SIZE))
    sigmas = basic(glyph, model=common["model"], scheduler="simple", steps=STEPS)
    output, denoised = await sample_advanced(
        glyph, noise=random_noise(noise_seed=3), guider=cfg_guider(**common), sampler="euler", sigmas=sigmas,
        latent_image=empty_latent(**SIZE),
    )  # fmt: skip
    torch.testing.assert_close(output["samples"], whole["samples"], **CLOSE)
    torch.testing.assert_close(denoised["samples"], whole["samples"], **CLOSE)
    high, _ = split(sigmas=sigmas, step=2)
    noisy, early = await sample_advanced(
        glyph, noise=random_noise(noise_seed=3), guider=cfg_guider(**common), sampler="euler", sigmas=high,
        latent_image=empty_latent(**SIZE),
    )  # fmt: skip
    assert not torch.allclose(noisy["samples"], early["samples"], **CLOSE)


async def test_what_the_noise_mask_leaves_out_stays(
    glyph: JobNodeContext, parts: Any, common: dict[str, Any]
) -> None:
    picture = await encode(glyph, pixels=torch.rand(1, 64, 64, 3), vae=parts[2])
    mask = torch.zeros(1, 64, 64)
    mask[:, :, 32:] = 1
    latent = set_noise_mask(samples=picture, mask=mask)
    result = await k_sampler(glyph, **common, seed=4, steps=STEPS, latent_image=latent)
    half = result["samples"].shape[-1] // 2
    torch.testing.assert_close(result["samples"][..., :half], picture["samples"][..., :half], **CLOSE)
    assert not torch.allclose(result["samples"][..., half:], picture["samples"][..., half:], atol=0.1)


async def test_an_item_taken_from_a_batch_is_sampled_as_in_the_batch(
    glyph: JobNodeContext, common: dict[str, Any]
) -> None:
    batch = empty_latent(**SIZE, batch_size=3)
    together = await k_sampler(glyph, **common, seed=5, steps=STEPS, latent_image=batch)
    alone = from_batch(samples=batch, batch_index=1)
    one = await k_sampler(glyph, **common, seed=5, steps=STEPS, latent_image=alone)
    torch.testing.assert_close(one["samples"][0], together["samples"][1], **CLOSE)


async def test_runs_side_by_side_are_merged_and_give_what_they_give_alone(
    glyph: JobNodeContext, common: dict[str, Any], engine: Engine
) -> None:
    async def run(seed: int, steps: int) -> torch.Tensor:
        latent = await k_sampler(glyph, **common, seed=seed, steps=steps, latent_image=empty_latent(**SIZE))
        samples: torch.Tensor = latent["samples"]
        return samples

    alone = [await run(seed, steps) for seed, steps in ((6, 3), (7, 5), (8, 4))]
    before = engine.stats().forwards
    together = await asyncio.gather(run(6, 3), run(7, 5), run(8, 4))
    assert engine.stats().forwards - before < 3 + 5 + 4
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


async def test_tiles_make_the_same_picture_but_for_their_seams(glyph: JobNodeContext, parts: Any) -> None:
    latent = await encode(glyph, pixels=torch.full((1, 128, 128, 3), 0.5), vae=parts[2])
    whole = await decode(glyph, samples=latent, vae=parts[2])
    tiled = await decode_tiled(glyph, samples=latent, vae=parts[2], tile_size=64, overlap=16)
    assert tiled.shape == whole.shape == (1, 128, 128, 3)
    assert (tiled - whole).abs().mean() < 0.05


async def test_inpainting_encodes_a_picture_with_its_hole(glyph: JobNodeContext, parts: Any) -> None:
    mask = torch.zeros(1, 64, 64)
    mask[:, 16:32, 16:32] = 1
    latent = await encode_for_inpaint(glyph, pixels=torch.rand(1, 64, 64, 3), vae=parts[2], mask=mask)
    assert latent["samples"].shape[-2:] == (16, 16)
    assert latent["noise_mask"].sum() > mask.sum()


async def test_a_k_sampler_that_cannot_be_served_says_why(
    glyph: JobNodeContext, common: dict[str, Any]
) -> None:
    latent = {"samples": torch.ones(1, 4, 8, 8)}
    with pytest.raises(Exception, match="the latent has 4 channels, the model takes 8"):
        await k_sampler(glyph, **common, latent_image=latent)


def test_the_embedded_model_is_a_folder_beside_the_program(parts: Any) -> None:
    model, clip, vae = parts
    assert (model.weights, vae.factor, vae.channels) == (model.weights, 4, 8)
    assert Path(model.weights).name == "glyph"
    assert clip is not None
