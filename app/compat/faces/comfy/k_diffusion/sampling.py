"""`comfy.k_diffusion.sampling`: the small formulas; samplers and their noise are this program's runtime's."""

from __future__ import annotations

from typing import Any

from app.compat.named import named

BrownianTreeNoiseSampler, get_sigmas_karras, get_sigmas_exponential, sample_euler, sample_dpmpp_2m = named(
    "comfy.k_diffusion.sampling",
    "BrownianTreeNoiseSampler",
    "get_sigmas_karras",
    "get_sigmas_exponential",
    "sample_euler",
    "sample_dpmpp_2m",
)


def append_dims(x: Any, target_dims: int) -> Any:
    """Dimensions of size one at the end, up to `target_dims`."""
    return x[(...,) + (None,) * (target_dims - x.ndim)]


def to_d(x: Any, sigma: Any, denoised: Any) -> Any:
    """The direction towards the clean estimate, for one unit of noise level."""
    return (x - denoised) / append_dims(sigma, x.ndim)


def append_zero(x: Any) -> Any:
    import torch

    return torch.cat([x, x.new_zeros([1])])


def default_noise_sampler(x: Any, seed: int | None = None) -> Any:
    import torch

    generator = None
    if seed is not None:
        generator = torch.Generator(device=x.device).manual_seed(seed)
    return lambda sigma, sigma_next: torch.randn(
        x.size(), dtype=x.dtype, layout=x.layout, device=x.device, generator=generator
    )
