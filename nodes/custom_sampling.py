"""Sampling in parts: noise, guider, sampler and levels as sockets, and the nodes that run them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from nodes.context import NodeContext
from nodes.declare import node
from nodes.parts import present
from nodes.sampling import Guidance, SamplerName, sample_request, sampled
from nodes.types import Conditioning, Guider, Latent, Model, Noise, Options, Sampler, Seed, Sigmas
from runtime.diffusion.api import ModelRef

CATEGORY = "model/sampling"
CUSTOM = f"{CATEGORY}/custom"


@dataclass(frozen=True, slots=True)
class SeededNoise:
    """The value of a NOISE socket; without a seed nothing is added."""

    seed: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """The value of a GUIDER socket. Without a negative there is one pass and no guidance scale."""

    model: ModelRef
    positive: Conditioning
    negative: Conditioning | None = None
    cfg: float = 1.0


@node("RandomNoise", category=f"{CATEGORY}/noise")
def random_noise(*, noise_seed: Seed = 0) -> Noise:
    """The noise that a seed gives."""
    return SeededNoise(noise_seed)


@node("DisableNoise", category=f"{CATEGORY}/noise")
def disable_noise() -> Noise:
    """No noise: the latent already has what the first level needs."""
    return SeededNoise(None)


@node("KSamplerSelect", category=f"{CATEGORY}/samplers")
def select_sampler(*, sampler_name: SamplerName = "euler") -> Sampler:
    """How the levels are walked."""
    return sampler_name


@node("BasicGuider", display="Basic Guider", category=f"{CATEGORY}/guiders")
def basic_guider(*, model: Model, conditioning: Conditioning) -> Guider:
    """The conditioning alone, for models that need no negative."""
    return Guide(present(model, "MODEL"), conditioning)


@node("CFGGuider", display="CFG Guider", category=f"{CATEGORY}/guiders")
def cfg_guider(
    *, model: Model, positive: Conditioning, negative: Conditioning, cfg: Guidance = 8.0
) -> Guider:
    """Classifier-free guidance: away from the negative, by `cfg`."""
    return Guide(present(model, "MODEL"), positive, negative, cfg)


@node("SamplerCustomAdvanced", category=CUSTOM, outputs=("output", "denoised_output"))
async def sample_advanced(
    ctx: NodeContext, *, noise: Noise, guider: Guider, sampler: Sampler, sigmas: Sigmas, latent_image: Latent
) -> tuple[Latent, Latent]:
    """Walks the levels; the second output is the model's last answer, which is clean at any level."""
    return await _walked(ctx, noise, guider, sampler, sigmas, latent_image)


@node("SamplerCustom", category=CUSTOM, outputs=("output", "denoised_output"))
async def sample_custom(
    ctx: NodeContext,
    *,
    model: Model,
    add_noise: Annotated[bool, Options({"advanced": True})] = True,
    noise_seed: Seed = 0,
    cfg: Guidance = 8.0,
    positive: Conditioning,
    negative: Conditioning,
    sampler: Sampler,
    sigmas: Sigmas,
    latent_image: Latent,
) -> tuple[Latent, Latent]:
    """Walks the levels; the second output is the model's last answer, which is clean at any level."""
    noise = SeededNoise(noise_seed if add_noise else None)
    guide = Guide(present(model, "MODEL"), positive, negative, cfg)
    return await _walked(ctx, noise, guide, sampler, sigmas, latent_image)


async def _walked(
    ctx: NodeContext, noise: SeededNoise, guide: Guide, sampler: str, sigmas: Sigmas, latent: Latent
) -> tuple[Latent, Latent]:
    if len(sigmas) < 2:
        return latent, latent
    # With a scale of 1 the negative is not looked at.
    negative = guide.positive if guide.negative is None else guide.negative
    request = replace(
        sample_request(ctx, guide.model, guide.positive, negative, latent),
        seed=noise.seed or 0,
        add_noise=noise.seed is not None,
        cfg=guide.cfg,
        sampler=sampler,
        sigmas=sigmas,
    )
    return await sampled(ctx, request, latent)
