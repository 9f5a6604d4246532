"""Where a walk begins and ends: the latent fitted to the model, the levels, the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from runtime.diffusion.api import SampleRequest
from runtime.diffusion.families.base import LatentFormat
from runtime.diffusion.noise import SEED_LIMIT, start_noise
from runtime.diffusion.samplers import Sampler
from runtime.diffusion.sigmas import NoiseSchedule, part, walk
from runtime.platform.errors import Unsupported


def fitted_latent(request: SampleRequest, latent_format: LatentFormat) -> torch.Tensor:
    """The latent in the channels and the size that the model takes. Only an empty one may change."""
    latent = request.latent
    if latent.ndim != 4 or 0 in latent.shape:
        raise Unsupported(
            f"a latent is [batch, channels, height, width] and not empty, not {list(latent.shape)}"
        )
    latent = latent if latent.dtype == torch.float64 else latent.float()
    is_empty = not latent.any()
    if latent.shape[1] != latent_format.channels:
        if not is_empty:
            raise Unsupported(
                f"the latent has {latent.shape[1]} channels, the model takes {latent_format.channels}: "
                "encode the picture with the VAE that belongs to the model"
            )
        latent = latent.new_zeros(len(latent), latent_format.channels, *latent.shape[2:])
    if request.latent_factor not in (None, latent_format.factor) and is_empty:
        scale = request.latent_factor / latent_format.factor
        size = [max(1, round(cells * scale)) for cells in latent.shape[2:]]
        latent = latent.new_zeros(*latent.shape[:2], *size)
    return latent


def request_sigmas(request: SampleRequest, schedule: NoiseSchedule, sampler: Sampler) -> tuple[float, ...]:
    """The levels to walk; fewer than two when there is nothing to do. A level that repeats counts once."""
    if request.sigmas is not None:
        if request.sigmas.ndim != 1:
            raise Unsupported(f"sigmas are a list of levels, not a tensor {list(request.sigmas.shape)}")
        levels = [float(sigma) for sigma in request.sigmas.tolist()]
    else:
        levels = walk(
            schedule,
            request.scheduler,
            request.steps,
            request.denoise,
            skips_penultimate=sampler.skips_penultimate,
        )
        levels = part(levels, request.start_step, request.end_step, request.full_denoise)
    if not all(math.isfinite(sigma) and sigma >= 0 for sigma in levels):
        raise Unsupported(f"sigmas must be finite and not negative, not {levels}")
    if any(sigma == 0 for sigma in levels[:-1]):
        raise Unsupported("only the last of the sigmas may be 0")
    return tuple(sigma for place, sigma in enumerate(levels) if place == 0 or sigma != levels[place - 1])


def request_noise(request: SampleRequest, latent: torch.Tensor) -> torch.Tensor:
    """On the CPU, in the latent's type."""
    if request.noise is not None:
        if request.noise.shape != latent.shape:
            raise Unsupported(f"the noise is {list(request.noise.shape)}, the latent {list(latent.shape)}")
        return request.noise.to(latent)
    if not request.add_noise:
        return torch.zeros_like(latent)
    index = request.batch_index
    if index is not None and (len(index) != len(latent) or min(index) < 0):
        raise Unsupported(f"batch_index {index} does not name a noise for each of {len(latent)} images")
    return start_noise(latent.shape, request.seed, index).to(latent)


def inpaint_noise(request: SampleRequest, noise: torch.Tensor, sampler: Sampler) -> torch.Tensor:
    if not sampler.fresh_inpaint_noise:
        return noise
    return start_noise(noise.shape, (request.seed + 1) % SEED_LIMIT).to(noise)


def fitted_mask(mask: torch.Tensor, latent: torch.Tensor) -> torch.Tensor:
    """[1 or B, 1, h, w] at the latent's size, where 1 is to be painted anew."""
    planes = mask.reshape(-1, 1, *mask.shape[-2:]).to(latent)
    if planes.shape[-2:] != latent.shape[-2:]:
        planes = F.interpolate(planes, latent.shape[-2:], mode="bilinear")
    places = [image % len(planes) for image in range(len(latent))]
    return planes if len(planes) == 1 else planes[places]


@dataclass(frozen=True, slots=True, eq=False)
class Noising:
    """How this model's latents mix with noise; both are of the network's scale."""

    schedule: NoiseSchedule

    def begin(self, latent: torch.Tensor, noise: torch.Tensor, sigma: float) -> torch.Tensor:
        """Where a walk starts. At the highest level the latent counts as one more source of noise."""
        highest = self.schedule.sigma_max
        if not self.schedule.is_flow and (sigma >= highest or math.isclose(sigma, highest, rel_tol=1e-5)):
            return latent + noise * math.sqrt(1 + sigma**2)
        return self.at(latent, noise, sigma)

    def at(self, latent: torch.Tensor, noise: torch.Tensor, sigma: float) -> torch.Tensor:
        keep = 1 - sigma if self.schedule.is_flow else 1.0
        return latent * keep + noise * sigma

    def end(self, x: torch.Tensor, sigmas: Sequence[float]) -> torch.Tensor:
        """A flow latent that was left noisy is scaled so that it can be the start of another walk."""
        is_left_noisy = self.schedule.is_flow and 0 < sigmas[-1] < 1
        return x / (1 - sigmas[-1]) if is_left_noisy else x
