"""A SampleRequest as a generator of rows: sampler, inpainting, guidance and the model's prediction, nested.

It knows one request and its loaded model; it knows no other request, no batch and no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch

from runtime.diffusion.api import Sampled, SampleRequest
from runtime.diffusion.batch import DenoiseRow
from runtime.diffusion.cond import Surroundings, regions, with_areas_of
from runtime.diffusion.families.base import LatentFormat, Network, Prediction
from runtime.diffusion.guidance import Guided, Repaint, Sides, guided, inpainted, watched
from runtime.diffusion.noise import RequestNoise
from runtime.diffusion.prediction import clean_estimate, network_input
from runtime.diffusion.samplers import Walk, samplers
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.diffusion.start import (
    Noising,
    fitted_latent,
    fitted_mask,
    inpaint_noise,
    request_noise,
    request_sigmas,
)
from runtime.platform.errors import Unsupported

Rows = Generator[list[DenoiseRow], "list[torch.Tensor]", Sampled]
OnStep = Callable[[int, int, torch.Tensor], None]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """What sampling needs of a model: its network and how that is to be understood."""

    network: Network
    prediction: Prediction
    schedule: NoiseSchedule
    latent_format: LatentFormat


def sample(request: SampleRequest, model: LoadedModel, device: str, on_step: OnStep) -> Rows:
    """`on_step` hears of the steps done, of all steps, and of the clean estimate in the network's scale."""
    sampler = samplers[request.sampler]
    sigmas = request_sigmas(request, model.schedule, sampler)
    cpu_latent = fitted_latent(request, model.latent_format)
    if len(sigmas) < 2:
        return Sampled(cpu_latent, cpu_latent)
    cpu_noise = request_noise(request, cpu_latent)
    latent = cpu_latent.to(device)
    if cpu_latent.any():
        latent = model.latent_format.to_network(latent)
    noise, noising = cpu_noise.to(device), Noising(model.schedule)

    last = [latent]

    def watch(steps_done: int, denoised: torch.Tensor) -> None:
        last[0] = denoised
        on_step(steps_done, len(sigmas) - 1, denoised)

    sampling = sampler.start(
        Walk(
            x=noising.begin(latent, noise, sigmas[0]),
            sigmas=sigmas,
            noise=RequestNoise(request.seed, latent, sigmas),
            is_flow=model.schedule.is_flow,
            sigma_at=model.schedule.percent_to_sigma,
        )
    )
    if request.noise_mask is not None:
        fresh = inpaint_noise(request, cpu_noise, sampler).to(device)
        mask = fitted_mask(request.noise_mask, latent)
        sampling = inpainted(sampling, Repaint(mask, latent, lambda sigma: noising.at(latent, fresh, sigma)))
    around = Surroundings(latent, model.latent_format, model.schedule, model.network.dtype)
    positive, negative = regions(request.positive, around), regions(request.negative, around)
    sides = Sides(with_areas_of(positive, negative), with_areas_of(negative, positive), request.cfg)
    course = guided(watched(sampling, watch), sides, keeps_unguided=sampler.needs_unguided)
    x = yield from _as_rows(course, model, request.id if request.deterministic else None)
    x = model.latent_format.from_network(noising.end(x, sigmas))
    return Sampled(_on_cpu(x), _on_cpu(model.latent_format.from_network(last[0])))


def _as_rows(
    course: Guided, model: LoadedModel, alone: str | None
) -> Generator[list[DenoiseRow], list[torch.Tensor], torch.Tensor]:
    """Each image of each evaluation is a row; raw answers become clean estimates."""
    try:
        evals = next(course)
        while True:
            rows = []
            for wanted in evals:
                shown = network_input(wanted.x, wanted.sigma, model.prediction)
                timestep = model.schedule.timestep(wanted.sigma)
                rows += [
                    DenoiseRow(model.network, image, timestep, cond, alone)
                    for image, cond in zip(shown, wanted.conds, strict=True)
                ]
            answers = iter((yield rows))
            estimates = []
            for wanted in evals:
                raw = torch.stack([next(answers) for _ in wanted.conds]).to(wanted.x.dtype)
                estimates.append(clean_estimate(wanted.x, wanted.sigma, raw, model.prediction))
            evals = course.send(estimates)
    except StopIteration as end:
        x: torch.Tensor = end.value
        return x
    except (ZeroDivisionError, OverflowError) as error:
        raise Unsupported(f"this sampler cannot walk these noise levels: {error}") from error
    finally:
        course.close()


def _on_cpu(latent: torch.Tensor) -> torch.Tensor:
    """A copy that belongs to the caller."""
    return latent.to("cpu", copy=True)
