"""A request through the engine gives what the stock pipeline gives, alone and with others at its side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.api import Conditioning, SampleRequest
from runtime.diffusion.engine import Engine
from tests.cpu.families.test_pipelines import SCALE, TEXTS, noise, pytestmark  # noqa: F401

STEPS = 4
FAMILIES = ["sd15", "sdxl", "sd3", "flux", "z_image"]


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(dict)
    yield engine
    engine.close()


def encoded(engine: Engine, folder: Path) -> tuple[Conditioning, Conditioning]:
    from runtime.diffusion.api import EncodeTextRequest

    clip = engine.inspect_checkpoint(folder).clip
    assert clip is not None
    handles = [
        engine.submit(EncodeTextRequest(f"text {place}", clip, (text,))) for place, text in enumerate(TEXTS)
    ]
    positive, negative = (handle.wait(60) for handle in handles)
    return positive, negative


def stock(pipeline: Any, family: str, positive: Conditioning, negative: Conditioning) -> torch.Tensor:
    """The pipeline's latents, in the network's scale, and the levels that it walked."""
    given: dict[str, Any] = {"prompt_embeds": positive[0][0], "guidance_scale": SCALE, "latents": noise()}
    given |= {"height": 16, "width": 24, "num_inference_steps": STEPS, "output_type": "latent"}
    pooled = [entry[0][1].get("pooled_output") for entry in (positive, negative)]
    if family in ("sdxl", "sd3"):
        given |= {"pooled_prompt_embeds": pooled[0], "negative_pooled_prompt_embeds": pooled[1]}
    if family == "flux":
        from runtime.diffusion.families.flux import pack, unpack

        given |= {"pooled_prompt_embeds": pooled[0], "latents": pack(noise()), "guidance_scale": 2.5}
        return unpack(pipeline(**given).images, 4, 6)
    if family == "z_image":
        given |= {"prompt_embeds": [positive[0][0][0]], "guidance_scale": SCALE - 1}
        given["negative_prompt_embeds"] = [negative[0][0][0]]
    else:
        given["negative_prompt_embeds"] = negative[0][0]
    latents: torch.Tensor = pipeline(**given).images
    return latents


def request(
    engine: Engine, folder: Path, family: str, sigmas: torch.Tensor, name: str, **more: Any
) -> SampleRequest:
    model = engine.inspect_checkpoint(folder).model
    assert model is not None
    positive, negative = encoded(engine, folder)
    if family == "flux":
        positive[0][1]["guidance"] = 2.5
    values = {"latent": torch.zeros(1, 4, 8, 12), "noise": noise(), "sigmas": sigmas, "cfg": SCALE} | more
    cfg = 1.0 if family == "flux" else values.pop("cfg")
    values.pop("cfg", None)
    return SampleRequest(
        name, model, positive=positive, negative=negative, cfg=cfg, sampler="euler", previews=False, **values
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_request_gives_what_the_pipeline_gives(
    saved: Callable[..., Any], engine: Engine, family: str
) -> None:
    pipeline, folder = saved(family)
    expected = stock(pipeline, family, *encoded(engine, folder))
    sigmas = pipeline.scheduler.sigmas.clone()
    latent_format = engine._loader.latent_format(request(engine, folder, family, sigmas, "x").model)
    # diffusers starts an eps model at noise * sigma, ComfyUI and we at noise * sqrt(sigma^2 + 1)
    first = float(sigmas[0])
    start = noise() * (first / (first**2 + 1) ** 0.5 if family in ("sd15", "sdxl") else 1.0)
    ours = engine.submit(request(engine, folder, family, sigmas, "one", noise=start)).wait(120)
    answer = latent_format.to_network(ours.latent)
    error = (answer - expected).abs().max() / expected.abs().max()
    assert error < 1e-4, error


@pytest.mark.parametrize("family", FAMILIES)
def test_requests_at_different_steps_share_forwards_and_equal_themselves_alone(
    saved: Callable[..., Any], family: str
) -> None:
    pipeline, folder = saved(family)
    rows: list[int] = []
    engine = Engine(dict, on_forward=rows.append)
    try:
        pipeline.scheduler.set_timesteps(6, **({"mu": 1.15} if family == "flux" else {}))
        sigmas = pipeline.scheduler.sigmas.clone()
        short = sigmas[[0, 2, 5, 6]]
        others = {
            "long": request(engine, folder, family, sigmas, "long"),
            "short": request(engine, folder, family, short, "short", cfg=2.0),
            "late": request(engine, folder, family, sigmas[3:], "late", noise=noise() * 0.5),
        }
        alone = {name: engine.submit(others[name]).wait(120).latent for name in others}
        rows.clear()
        handles = {name: engine.submit(others[name]) for name in others}
        together = {name: handle.wait(120).latent for name, handle in handles.items()}
        assert len(rows) <= 7, rows
        assert max(rows) >= (3 if family == "flux" else 6)
        for name in others:
            error = (together[name] - alone[name]).abs().max() / alone[name].abs().max()
            assert error < 1e-4, (name, error)
    finally:
        engine.close()
