"""The two KSamplers, and how a LATENT becomes a SampleRequest and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from nodes.context import NodeContext
from nodes.control import with_shared_controls
from nodes.declare import node
from nodes.parts import present
from nodes.types import Conditioning, Float, Int, Latent, Model, Options, Seed
from runtime.diffusion.api import SampleRequest

CATEGORY = "model/sampling"
ADVANCED = Options({"advanced": True})

# What an empty latent says about itself: pixels per cell that it was made for.
EMPTY_FACTOR = "downscale_ratio_spacial"

SamplerName = Literal[
    "euler", "euler_cfg_pp", "euler_ancestral", "euler_ancestral_cfg_pp", "heun", "heunpp2", "exp_heun_2_x0",
    "exp_heun_2_x0_sde", "dpm_2", "dpm_2_ancestral", "lms", "dpm_fast", "dpm_adaptive", "dpmpp_2s_ancestral",
    "dpmpp_2s_ancestral_cfg_pp", "dpmpp_sde", "dpmpp_sde_gpu", "dpmpp_2m", "dpmpp_2m_cfg_pp", "dpmpp_2m_sde",
    "dpmpp_2m_sde_gpu", "dpmpp_2m_sde_heun", "dpmpp_2m_sde_heun_gpu", "dpmpp_3m_sde", "dpmpp_3m_sde_gpu",
    "ddpm", "lcm", "ipndm", "ipndm_v", "deis", "res_multistep", "res_multistep_cfg_pp",
    "res_multistep_ancestral", "res_multistep_ancestral_cfg_pp", "gradient_estimation",
    "gradient_estimation_cfg_pp", "er_sde", "seeds_2", "seeds_3", "sa_solver", "sa_solver_pece", "ddim",
    "uni_pc", "uni_pc_bh2",
]  # fmt: skip
SchedulerName = Literal[
    "simple", "sgm_uniform", "karras", "exponential", "ddim_uniform", "beta", "normal", "linear_quadratic",
    "kl_optimal",
]  # fmt: skip

Steps = Annotated[int, Int(1, 10_000)]
Guidance = Annotated[float, Float(0.0, 100.0, 0.1, round=0.01)]
Denoise = Annotated[float, Float(0.0, 1.0, 0.01)]


@node("KSampler", category=CATEGORY)
async def k_sampler(
    ctx: NodeContext,
    *,
    model: Model,
    seed: Seed = 0,
    steps: Steps = 20,
    cfg: Guidance = 8.0,
    sampler_name: SamplerName = "euler",
    scheduler: SchedulerName = "simple",
    positive: Conditioning,
    negative: Conditioning,
    latent_image: Latent,
    denoise: Denoise = 1.0,
) -> Latent:
    """Denoises a latent towards the positive conditioning and away from the negative one."""
    request = replace(
        sample_request(ctx, model, positive, negative, latent_image),
        seed=seed,
        steps=steps,
        cfg=cfg,
        sampler=sampler_name,
        scheduler=scheduler,
        denoise=denoise,
    )
    latent, _ = await sampled(ctx, request, latent_image)
    return latent


@node("KSamplerAdvanced", display="KSampler (Advanced)", category=CATEGORY)
async def k_sampler_advanced(
    ctx: NodeContext,
    *,
    model: Model,
    add_noise: Annotated[Literal["enable", "disable"], ADVANCED] = "enable",
    noise_seed: Seed = 0,
    steps: Steps = 20,
    cfg: Guidance = 8.0,
    sampler_name: SamplerName = "euler",
    scheduler: SchedulerName = "simple",
    positive: Conditioning,
    negative: Conditioning,
    latent_image: Latent,
    start_at_step: Annotated[int, Int(0, 10_000), ADVANCED] = 0,
    end_at_step: Annotated[int, Int(0, 10_000), ADVANCED] = 10_000,
    return_with_leftover_noise: Annotated[Literal["disable", "enable"], ADVANCED] = "disable",
) -> Latent:
    """A KSampler that runs a part of the steps, so that several can share one run."""
    request = replace(
        sample_request(ctx, model, positive, negative, latent_image),
        seed=noise_seed,
        steps=steps,
        cfg=cfg,
        sampler=sampler_name,
        scheduler=scheduler,
        start_step=start_at_step,
        end_step=end_at_step,
        add_noise=add_noise == "enable",
        full_denoise=return_with_leftover_noise == "disable",
    )
    latent, _ = await sampled(ctx, request, latent_image)
    return latent


def sample_request(
    ctx: NodeContext,
    model: Model | None,
    positive: Conditioning,
    negative: Conditioning,
    latent: Latent,
) -> SampleRequest:
    """What a latent and its conditionings say; the caller replaces how to sample."""
    indexes = latent.get("batch_index")
    return SampleRequest(
        id=ctx.request_id(),
        model=present(model, "MODEL"),
        latent=latent["samples"],
        positive=positive,
        negative=with_shared_controls(positive, negative),
        noise_mask=latent.get("noise_mask"),
        batch_index=None if indexes is None else tuple(indexes),
        latent_factor=latent.get(EMPTY_FACTOR),
    )


async def sampled(
    ctx: NodeContext, request: SampleRequest, latent: Latent
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the sampler ended, and its last denoised answer, each as a LATENT like the one that went in."""
    result = await ctx.run(ctx.diffusion.submit(request))
    kept = {key: value for key, value in latent.items() if key != EMPTY_FACTOR}
    return {**kept, "samples": result.latent}, {**kept, "samples": result.denoised}
