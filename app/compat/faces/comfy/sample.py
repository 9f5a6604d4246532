"""`comfy.sample`: sampling by this program's runtime, merged with what other jobs sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from app.compat.asking import answer, running_node
from app.compat.models import ModelFace
from nodes.control import with_shared_controls
from runtime.diffusion.api import SampleRequest


def prepare_noise(
    latent_image: torch.Tensor, seed: int, noise_inds: Sequence[int] | None = None
) -> torch.Tensor:
    """ComfyUI's noise of a seed, drawn on the CPU; with `noise_inds` equal numbers give equal noise."""
    generator = torch.manual_seed(seed)
    shape = tuple(latent_image.shape)
    if noise_inds is None:
        return torch.randn(shape, dtype=torch.float32, generator=generator).to(latent_image.dtype)
    drawn = [torch.randn((1, *shape[1:]), generator=generator) for _ in range(max(noise_inds) + 1)]
    return torch.cat([drawn[index] for index in noise_inds]).to(latent_image.dtype)


def fix_empty_latent_channels(
    model: Any,
    latent_image: torch.Tensor,
    downscale_ratio_spacial: int | None = None,
    downscale_ratio_temporal: int | None = None,
) -> torch.Tensor:
    """An empty latent is fitted to its model when it is sampled."""
    return latent_image


def sample(
    model: ModelFace,
    noise: torch.Tensor,
    steps: int,
    cfg: float,
    sampler_name: str,
    scheduler: str,
    positive: Any,
    negative: Any,
    latent_image: torch.Tensor,
    denoise: float = 1.0,
    disable_noise: bool = False,
    start_step: int | None = None,
    last_step: int | None = None,
    force_full_denoise: bool = False,
    noise_mask: torch.Tensor | None = None,
    sigmas: torch.Tensor | None = None,
    callback: Callable[..., Any] | None = None,
    disable_pbar: bool = False,
    seed: int | None = None,
) -> torch.Tensor:
    """Progress and previews go to the node; `callback` is called once, at the end."""
    whole = start_step is None and last_step is None
    request = SampleRequest(
        id=running_node().request_id(),
        model=model.ref,
        latent=latent_image,
        positive=positive,
        negative=with_shared_controls(positive, negative),
        seed=seed or 0,
        steps=steps,
        cfg=cfg,
        sampler=sampler_name,
        scheduler=scheduler,
        denoise=denoise,
        start_step=start_step or 0,
        end_step=10_000 if last_step is None else last_step,
        add_noise=not disable_noise,
        full_denoise=whole or force_full_denoise,
        noise_mask=noise_mask,
        sigmas=sigmas,
        noise=None if disable_noise else noise,
    )
    return _sampled(request, callback)


def sample_custom(
    model: ModelFace,
    noise: torch.Tensor,
    cfg: float,
    sampler: Any,
    sigmas: torch.Tensor,
    positive: Any,
    negative: Any,
    latent_image: torch.Tensor,
    noise_mask: torch.Tensor | None = None,
    callback: Callable[..., Any] | None = None,
    disable_pbar: bool = False,
    seed: int | None = None,
) -> torch.Tensor:
    request = SampleRequest(
        id=running_node().request_id(),
        model=model.ref,
        latent=latent_image,
        positive=positive,
        negative=with_shared_controls(positive, negative),
        seed=seed or 0,
        cfg=cfg,
        sampler=sampler if isinstance(sampler, str) else sampler.name,
        sigmas=sigmas,
        noise_mask=noise_mask,
        noise=noise,
    )
    return _sampled(request, callback)


def _sampled(request: SampleRequest, callback: Callable[..., Any] | None) -> torch.Tensor:
    result = answer(request)
    if callback is not None:
        steps = request.steps if request.sigmas is None else len(request.sigmas) - 1
        callback(steps - 1, result.denoised, result.latent, steps)
    latent: torch.Tensor = result.latent
    return latent
