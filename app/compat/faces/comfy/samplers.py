"""`comfy.samplers`: the names of samplers and schedulers, and sampling with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

from app.compat.models import ModelFace
from app.compat.named import Refused, named
from nodes.sampling import SamplerName, SchedulerName

SAMPLER_NAMES = [str(name) for name in get_args(SamplerName)]
SCHEDULER_NAMES = [str(name) for name in get_args(SchedulerName)]
KSAMPLER_NAMES = [name for name in SAMPLER_NAMES if name not in ("ddim", "uni_pc", "uni_pc_bh2")]

CFGGuider, Sampler, SchedulerHandler, KSamplerX0Inpaint = named(
    "comfy.samplers", "CFGGuider", "Sampler", "SchedulerHandler", "KSamplerX0Inpaint"
)

(
    sampling_function,
    calc_cond_batch,
    calc_cond_uncond_batch,
    process_conds,
    k_diffusion_sampling,
    cfg_function,
    encode_model_conds,
    resolve_areas_and_cond_masks,
) = named(
    "comfy.samplers",
    "sampling_function",
    "calc_cond_batch",
    "calc_cond_uncond_batch",
    "process_conds",
    "k_diffusion_sampling",
    "cfg_function",
    "encode_model_conds",
    "resolve_areas_and_cond_masks",
)


@dataclass(slots=True)
class KSAMPLER:
    """A sampler by name, for a SAMPLER socket or `comfy.sample.sample_custom`."""

    sampler_function: Any
    extra_options: dict[str, Any] = field(default_factory=dict)
    inpaint_options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        if not isinstance(self.sampler_function, str):
            raise Refused("Treadle walks noise levels with its own samplers, not with a pack's function")
        return self.sampler_function


def sampler_object(name: str) -> KSAMPLER:
    if name not in SAMPLER_NAMES:
        raise ValueError(f"there is no sampler '{name}'; there are: {', '.join(SAMPLER_NAMES)}")
    return KSAMPLER(name)


def ksampler(
    sampler_name: str,
    extra_options: dict[str, Any] | None = None,
    inpaint_options: dict[str, Any] | None = None,
) -> KSAMPLER:
    sampler = sampler_object(sampler_name)
    sampler.extra_options, sampler.inpaint_options = extra_options or {}, inpaint_options or {}
    return sampler


def calculate_sigmas(model_sampling: Any, scheduler_name: str, steps: int) -> Any:
    raise Refused("Treadle computes noise levels of a MODEL: use its BasicScheduler node")


class KSampler:
    """`SAMPLERS` and `SCHEDULERS` are what nodes offer as choices."""

    SAMPLERS = SAMPLER_NAMES
    SCHEDULERS = SCHEDULER_NAMES
    DISCARD_PENULTIMATE_SIGMA_SAMPLERS = frozenset({"dpm_2", "dpm_2_ancestral", "uni_pc", "uni_pc_bh2"})

    def __init__(
        self,
        model: ModelFace,
        steps: int,
        device: Any,
        sampler: str | None = None,
        scheduler: str | None = None,
        denoise: float | None = None,
        model_options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.steps = steps
        self.device = device
        self.sampler = sampler or SAMPLER_NAMES[0]
        self.scheduler = scheduler or SCHEDULER_NAMES[0]
        self.denoise = 1.0 if denoise is None else denoise

    def sample(self, noise: Any, positive: Any, negative: Any, cfg: float, **options: Any) -> Any:
        from app.compat.faces.comfy.sample import sample

        latent = options.pop("latent_image", None)
        mask = options.pop("denoise_mask", None)
        return sample(
            self.model, noise, self.steps, cfg, self.sampler, self.scheduler, positive, negative,
            noise if latent is None else latent, denoise=self.denoise, noise_mask=mask, **options,
        )  # fmt: skip
