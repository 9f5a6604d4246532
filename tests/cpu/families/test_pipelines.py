"""A request on its own gives what the stock diffusers pipeline gives, for each family.

The pipeline's own levels and time steps are walked by a plain Euler loop over our network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.families.base import Cond, Network
from runtime.diffusion.model import Loader, inspect_checkpoint

# numpy and diffusers disagree about a keyword; not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

STEPS = 4
SCALE = 5.0
TEXTS = ("a red cat", "the house")


def noise(channels: int = 4) -> torch.Tensor:
    return torch.randn(1, channels, 8, 12, generator=torch.Generator().manual_seed(5))


def load(folder: Path) -> tuple[Network, Any, Any]:
    checkpoint = inspect_checkpoint(folder)
    loader = Loader(dict)
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    return (
        loader.network(checkpoint.model),
        loader.text_encoder(checkpoint.clip),
        loader.family(checkpoint.model),
    )


def cond(conditioning: list[list[Any]], **values: Any) -> Cond:
    tokens, extra = conditioning[0]
    return Cond(tokens, extra.get("pooled_output"), **values)


def euler(
    network: Network,
    x: torch.Tensor,
    sigmas: Sequence[float],
    timesteps: Sequence[float],
    conds: list[Cond],
    cfg: float,
) -> torch.Tensor:
    """Positive first. An eps model when its first level is far above 1, else a flow model."""
    is_flow = sigmas[0] <= 1
    for sigma, after, timestep in zip(sigmas, sigmas[1:], timesteps):
        inputs = x if is_flow else x / (sigma**2 + 1) ** 0.5
        answers = network.forward(
            torch.cat([inputs] * len(conds)), torch.full((len(conds),), float(timestep)), conds
        ).chunk(len(conds))
        answer = answers[0] if len(conds) == 1 else answers[1] + cfg * (answers[0] - answers[1])
        x = x + answer * (after - sigma)
    return x


def assert_close(ours: torch.Tensor, stock: torch.Tensor) -> None:
    assert stock.abs().max() > 0.1
    error = (ours - stock).abs().max() / stock.abs().max()
    assert error < 1e-4, error


@pytest.mark.parametrize("family", ["sd15", "sdxl"])
def test_unet_families_give_what_their_pipelines_give(saved: Callable[..., Any], family: str) -> None:
    pipeline, folder = saved(family)
    network, text_encoder, _ = load(folder)
    positive, negative = text_encoder.encode([(TEXTS[0],), (TEXTS[1],)])
    pooled = (
        {}
        if family == "sd15"
        else {
            "pooled_prompt_embeds": positive[0][1]["pooled_output"],
            "negative_pooled_prompt_embeds": negative[0][1]["pooled_output"],
        }
    )
    stock = pipeline(
        prompt_embeds=positive[0][0],
        negative_prompt_embeds=negative[0][0],
        **pooled,
        latents=noise(),
        height=16,
        width=24,
        num_inference_steps=STEPS,
        guidance_scale=SCALE,
        output_type="latent",
    ).images
    schedule = pipeline.scheduler
    start = noise() * float(schedule.init_noise_sigma)
    conds = [cond(positive), cond(negative)]
    ours = euler(network, start, schedule.sigmas.tolist(), schedule.timesteps.tolist(), conds, SCALE)
    assert_close(ours, stock)


def test_sd3_gives_what_its_pipeline_gives(saved: Callable[..., Any]) -> None:
    pipeline, folder = saved("sd3")
    network, text_encoder, _ = load(folder)
    positive, negative = text_encoder.encode([(TEXTS[0],), (TEXTS[1],)])
    stock = pipeline(
        prompt_embeds=positive[0][0],
        negative_prompt_embeds=negative[0][0],
        pooled_prompt_embeds=positive[0][1]["pooled_output"],
        negative_pooled_prompt_embeds=negative[0][1]["pooled_output"],
        latents=noise(),
        height=16,
        width=24,
        num_inference_steps=STEPS,
        guidance_scale=SCALE,
        output_type="latent",
    ).images
    schedule = pipeline.scheduler
    conds = [cond(positive), cond(negative)]
    ours = euler(network, noise(), schedule.sigmas.tolist(), schedule.timesteps.tolist(), conds, SCALE)
    assert_close(ours, stock)


def test_flux_gives_what_its_pipeline_gives(saved: Callable[..., Any]) -> None:
    from runtime.diffusion.families.flux import pack, unpack

    pipeline, folder = saved("flux")
    network, text_encoder, _ = load(folder)
    positive = text_encoder.encode([(TEXTS[0],)])[0]
    stock = pipeline(
        prompt_embeds=positive[0][0],
        pooled_prompt_embeds=positive[0][1]["pooled_output"],
        latents=pack(noise()),
        height=16,
        width=24,
        num_inference_steps=STEPS,
        guidance_scale=2.5,
        output_type="latent",
    ).images
    schedule = pipeline.scheduler
    timesteps = (schedule.timesteps / 1000).tolist()
    conds = [cond(positive, guidance=2.5)]
    ours = euler(network, noise(), schedule.sigmas.tolist(), timesteps, conds, 1.0)
    assert_close(ours, unpack(stock, 4, 6))


def test_z_image_gives_what_its_pipeline_gives(saved: Callable[..., Any]) -> None:
    pipeline, folder = saved("z_image")
    network, text_encoder, _ = load(folder)
    positive, negative = text_encoder.encode([(TEXTS[0],), (TEXTS[1],)])
    stock = pipeline(
        prompt_embeds=[positive[0][0][0]],
        negative_prompt_embeds=[negative[0][0][0]],
        latents=noise(),
        height=16,
        width=24,
        num_inference_steps=STEPS,
        guidance_scale=SCALE - 1,  # this pipeline counts from 0
        output_type="latent",
    ).images
    schedule = pipeline.scheduler
    timesteps = (schedule.timesteps / 1000).tolist()
    conds = [cond(positive), cond(negative)]
    ours = euler(network, noise(), schedule.sigmas.tolist(), timesteps, conds, SCALE)
    assert_close(ours, stock)


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_our_time_steps_are_those_of_the_pipeline(saved: Callable[..., Any], family: str) -> None:
    pipeline, folder = saved(family)
    model = inspect_checkpoint(folder).model
    assert model is not None
    schedule = Loader(dict).family(model).schedule(model, None)
    scheduler = pipeline.scheduler
    scheduler.set_timesteps(8, **({"mu": 1.15} if family == "flux" else {}))
    scale = 1 if family in ("sd15", "sdxl", "sd3") else 1000
    # UNet pipelines interpolate levels at fractional time steps; ours names the nearest of a thousand
    tolerance = 0.51 if family in ("sd15", "sdxl") else 1e-3
    for sigma, timestep in zip(scheduler.sigmas.tolist(), scheduler.timesteps.tolist()):
        assert schedule.timestep(sigma) * scale == pytest.approx(timestep, rel=0, abs=tolerance)


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_prompts_are_read_as_the_pipeline_reads_them(saved: Callable[..., Any], family: str) -> None:
    pipeline, folder = saved(family)
    _, text_encoder, _ = load(folder)
    [[tokens, extra]] = text_encoder.encode([("a red cat",)])[0]
    length = {"sd3": {"max_sequence_length": 77}, "flux": {"max_sequence_length": 256}}.get(family, {})
    guided = {} if family == "flux" else {"do_classifier_free_guidance": False}
    if family == "sd15":
        answer = pipeline.encode_prompt("a red cat", "cpu", 1, **guided)
    elif family in ("sd3", "flux"):
        texts = {"prompt_2": None, "prompt_3": None} if family == "sd3" else {"prompt_2": None}
        answer = pipeline.encode_prompt("a red cat", **texts, **guided, **length)
    elif family == "sdxl":
        answer = pipeline.encode_prompt("a red cat", **guided)
    else:
        answer = ([z_image_states(pipeline, "a red cat")],)
    stock = answer[0][0] if family == "z_image" else answer[0]
    torch.testing.assert_close(tokens.reshape(stock.shape), stock, rtol=1e-4, atol=1e-5)
    pooled = {"sdxl": 2, "sd3": 2, "flux": 1}.get(family)
    if pooled:
        torch.testing.assert_close(extra["pooled_output"], answer[pooled], rtol=1e-4, atol=1e-5)


def z_image_states(pipeline: Any, text: str) -> torch.Tensor:
    """The pipeline wants a chat template, which the tiny tokenizer lacks; the rest is its own recipe."""
    prompt = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    ids = pipeline.tokenizer(prompt, return_tensors="pt").input_ids
    with torch.inference_mode():
        states: torch.Tensor = pipeline.text_encoder(input_ids=ids, output_hidden_states=True).hidden_states[
            -2
        ][0]
    return states
