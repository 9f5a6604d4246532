"""Samplers on Gaussian data, where the clean estimate and the exact path of a latent are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from runtime.diffusion.noise import RequestNoise
from runtime.diffusion.samplers import NAMES, Answer, Walk, samplers
from runtime.diffusion.samplers.base import Sampling
from runtime.diffusion.sigmas import NoiseSchedule

# diffusers' schedulers still turn tensors into arrays the old way
IGNORES_OLD_NUMPY = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DISCRETE, FLOW = NoiseSchedule.discrete(), NoiseSchedule.flow(3.0)
MEAN, SPREAD = 0.7, 0.5

# those that look back begin with one step of first order, which holds the whole walk to order two
ORDERS = {
    "euler": 1, "ddim": 1, "heun": 2, "heunpp2": 1, "dpm_2": 2, "lms": 2, "ipndm_v": 2, "ipndm": 2, "deis": 2,
    "dpmpp_2m": 2, "exp_heun_2_x0": 2, "res_multistep": 2, "gradient_estimation": 1, "uni_pc": 2,
    "uni_pc_bh2": 2, "dpm_fast": 2,
}  # fmt: skip
STOCHASTIC = [
    "euler_ancestral", "dpm_2_ancestral", "dpmpp_2s_ancestral", "dpmpp_sde", "dpmpp_sde_gpu", "dpmpp_2m_sde",
    "dpmpp_2m_sde_gpu", "dpmpp_2m_sde_heun", "dpmpp_2m_sde_heun_gpu", "dpmpp_3m_sde", "dpmpp_3m_sde_gpu",
    "ddpm", "exp_heun_2_x0_sde", "res_multistep_ancestral", "er_sde", "seeds_2", "seeds_3",
    "sa_solver", "sa_solver_pece",
]  # fmt: skip
ALONG_UNGUIDED = {
    "euler_cfg_pp": "euler", "euler_ancestral_cfg_pp": "euler_ancestral", "dpmpp_2m_cfg_pp": "dpmpp_2m",
    "dpmpp_2s_ancestral_cfg_pp": "dpmpp_2s_ancestral", "res_multistep_cfg_pp": "res_multistep",
    "res_multistep_ancestral_cfg_pp": "res_multistep_ancestral",
    "gradient_estimation_cfg_pp": "gradient_estimation",
}  # fmt: skip
OTHERS = ["lcm", "dpm_adaptive"]


def denoised(x: torch.Tensor, sigma: float, is_flow: bool) -> torch.Tensor:
    keep = 1 - sigma if is_flow else 1.0
    gain = keep * SPREAD**2 / (keep**2 * SPREAD**2 + sigma**2)
    return MEAN + gain * (x - keep * MEAN)


def spread_at(sigma: float, is_flow: bool) -> float:
    keep = 1 - sigma if is_flow else 1.0
    return math.sqrt(keep**2 * SPREAD**2 + sigma**2)


def exact(x: torch.Tensor, start: float, end: float, is_flow: bool) -> torch.Tensor:
    keep_start, keep_end = (1 - start, 1 - end) if is_flow else (1.0, 1.0)
    ratio = spread_at(end, is_flow) / spread_at(start, is_flow)
    return keep_end * MEAN + ratio * (x - keep_start * MEAN)


def drive(sampling: Sampling, is_flow: bool) -> tuple[torch.Tensor, int]:
    evaluations = 0
    try:
        wish = next(sampling)
        while True:
            evaluations += 1
            assert wish.x.isfinite().all(), wish
            answer = denoised(wish.x, wish.sigma, is_flow)
            wish = sampling.send(Answer(answer, answer))
    except StopIteration as end:
        return end.value, evaluations


def run(name: str, x: torch.Tensor, sigmas: list[float], is_flow: bool, seed: int = 0) -> torch.Tensor:
    noise = RequestNoise(seed, x, sigmas)
    schedule = FLOW if is_flow else DISCRETE
    walk = Walk(x, tuple(sigmas), noise, is_flow, sigma_at=schedule.percent_to_sigma)
    return drive(samplers[name].start(walk), is_flow)[0]


def levels(start: float, end: float, steps: int, *, even: bool = False) -> list[float]:
    if even:
        return [start + (end - start) * i / steps for i in range(steps + 1)]
    return [start * (end / start) ** (i / steps) for i in range(steps + 1)]


def test_every_name_is_tested_here() -> None:
    assert set(NAMES) == {*ORDERS, *STOCHASTIC, *ALONG_UNGUIDED, *OTHERS}


@pytest.mark.parametrize("is_flow", [False, True])
@pytest.mark.parametrize("name", list(ORDERS))
def test_a_deterministic_sampler_converges_with_its_order(name: str, is_flow: bool) -> None:
    start, end = (0.9, 0.1) if is_flow else (4.0, 0.2)
    x = torch.linspace(-3, 3, 5, dtype=torch.float64)
    even = name == "ipndm"
    errors = []
    for steps in (48, 96):
        answer = run(name, x, levels(start, end, steps, even=even), is_flow)
        errors.append(float((answer - exact(x, start, end, is_flow)).abs().max()))
    assert math.log2(errors[0] / errors[1]) > ORDERS[name] - 0.3, errors


@pytest.mark.parametrize("name", ["sa_solver", "sa_solver_pece"])
def test_sa_solver_is_deterministic_near_the_picture_and_converges(name: str) -> None:
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    errors = []
    for steps in (24, 48):
        one, other = (run(name, x, levels(0.4, 0.02, steps), False, seed=seed) for seed in (1, 2))
        assert torch.equal(one, other)
        errors.append(float((one - exact(x, 0.4, 0.02, False)).abs().max()))
    assert math.log2(errors[0] / errors[1]) > 2.5, errors


@pytest.mark.parametrize("is_flow", [False, True])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_a_stochastic_sampler_ends_with_the_right_spread(name: str, is_flow: bool) -> None:
    start, end = (0.9, 0.2) if is_flow else (6.0, 0.2)
    generator = torch.Generator().manual_seed(1)
    keep_start, keep_end = (1 - start, 1 - end) if is_flow else (1.0, 1.0)
    x = torch.randn(20_000, generator=generator, dtype=torch.float64) * spread_at(start, is_flow)
    answer = run(name, x + keep_start * MEAN, levels(start, end, 80), is_flow)
    assert float(answer.mean()) == pytest.approx(keep_end * MEAN, abs=0.02)
    assert float(answer.std()) == pytest.approx(spread_at(end, is_flow), rel=0.03)


# on flow models two of them add their noise by signal-to-noise ratio; the spread test below covers those
@pytest.mark.parametrize(
    ("name", "base", "is_flow"),
    [
        (name, base, is_flow)
        for name, base in ALONG_UNGUIDED.items()
        for is_flow in (False, True)
        if not is_flow or name not in ("euler_ancestral_cfg_pp", "dpmpp_2s_ancestral_cfg_pp")
    ],
)
def test_without_guidance_a_cfg_pp_sampler_is_its_base(name: str, base: str, is_flow: bool) -> None:
    x = torch.linspace(-3, 3, 5, dtype=torch.float64)
    sigmas = [0.95, 0.7, 0.4, 0.1, 0.0] if is_flow else [8.0, 3.0, 1.0, 0.3, 0.0]
    assert torch.allclose(run(name, x, sigmas, is_flow), run(base, x, sigmas, is_flow), atol=1e-12)


@pytest.mark.parametrize("is_flow", [False, True])
@pytest.mark.parametrize("name", ["euler_ancestral_cfg_pp", "dpmpp_2s_ancestral_cfg_pp"])
def test_noisy_cfg_pp_samplers_end_with_the_right_spread(name: str, is_flow: bool) -> None:
    test_a_stochastic_sampler_ends_with_the_right_spread(name, is_flow)


@pytest.mark.parametrize("is_flow", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_sampler_walks_from_pure_noise_to_zero_and_lands_among_the_data(
    name: str, is_flow: bool
) -> None:
    sigmas = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0] if is_flow else [14.6, 6.0, 2.5, 1.0, 0.3, 0.0]
    x = torch.linspace(-2, 2, 5, dtype=torch.float64) * sigmas[0]
    answer = run(name, x, sigmas, is_flow)
    assert answer.isfinite().all()
    assert float((answer - MEAN).abs().max()) < 5 * SPREAD


@pytest.mark.parametrize("is_flow", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_one_step_is_enough_to_end(name: str, is_flow: bool) -> None:
    sigmas = [1.0, 0.0] if is_flow else [14.6, 0.0]
    assert run(name, torch.ones(3, dtype=torch.float64), sigmas, is_flow).isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_closing_a_sampler_closes_what_is_inside(name: str) -> None:
    x = torch.ones(3)
    walk = Walk(x, (2.0, 1.0, 0.0), RequestNoise(0, x, (2.0, 1.0)), False, DISCRETE.percent_to_sigma)
    sampling = samplers[name].start(walk)
    next(sampling)
    sampling.close()
    with pytest.raises(StopIteration):
        next(sampling)


def test_adaptive_steps_stay_within_their_tolerance() -> None:
    x = torch.linspace(-3, 3, 5, dtype=torch.float64)
    answer = run("dpm_adaptive", x, levels(4.0, 0.2, 10), False)
    assert float((answer - exact(x, 4.0, 0.2, False)).abs().max()) < 0.02


def test_lcm_returns_the_estimate_with_the_next_noise() -> None:
    x = torch.ones(3, dtype=torch.float64)
    estimate = denoised(x, 2.0, False)
    noise = RequestNoise(9, x, (2.0, 1.0)).normal()
    assert torch.allclose(run("lcm", x, [2.0, 1.0], False, seed=9), estimate + noise)


def positions(
    name: str, sigmas: list[float], clean: Callable[[torch.Tensor, float], torch.Tensor]
) -> list[float]:
    """Where a sampler asks, from x = 1, for a denoiser that does not come from data."""
    x = torch.ones(1, dtype=torch.float64)
    sampling = samplers[name].start(
        Walk(x, tuple(sigmas), RequestNoise(0, x, sigmas), False, DISCRETE.percent_to_sigma)
    )
    asked = []
    try:
        wish = next(sampling)
        while True:
            asked.append(float(wish.x))
            wish = sampling.send(Answer(clean(wish.x, wish.sigma)))
    except StopIteration as end:
        return [*asked, float(end.value)]


@pytest.mark.parametrize("name", ["lms", "ipndm_v"])
def test_four_slopes_carry_a_cubic_slope_exactly(name: str) -> None:
    sigmas = [5.0, 4.2, 3.9, 3.0, 2.0, 1.7, 0.8]
    asked = positions(name, sigmas, lambda x, s: x - s * (s**3 - 2 * s + 1))
    for i in range(3, 6):
        a, b = sigmas[i], sigmas[i + 1]
        gained = (b**4 - a**4) / 4 - (b**2 - a**2) + (b - a)
        assert asked[i + 1] - asked[i] == pytest.approx(gained, rel=1e-12)


def test_equal_steps_have_the_classic_weights() -> None:
    sigmas = [5.0, 4.0, 3.0, 2.0, 1.0]
    assert positions("ipndm", sigmas, lambda x, s: x - s**4) == pytest.approx(
        positions("lms", sigmas, lambda x, s: x - s**4), rel=1e-12
    )


@IGNORES_OLD_NUMPY
@pytest.mark.parametrize("name", ["uni_pc", "uni_pc_bh2"])
def test_unipc_walks_as_diffusers_does(name: str) -> None:
    from diffusers import UniPCMultistepScheduler

    kind = {"uni_pc": "bh1", "uni_pc_bh2": "bh2"}[name]
    scheduler = UniPCMultistepScheduler(prediction_type="sample", solver_order=3, solver_type=kind)
    sigmas = [14.6, 8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.05]
    assert_walks_as(scheduler, name, sigmas)


@IGNORES_OLD_NUMPY
def test_dpmpp_2m_walks_as_diffusers_does() -> None:
    from diffusers import DPMSolverMultistepScheduler

    scheduler = DPMSolverMultistepScheduler(
        prediction_type="sample", lower_order_final=False, final_sigmas_type="sigma_min"
    )
    assert_walks_as(scheduler, "dpmpp_2m", [14.6, 8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.05])


def assert_walks_as(
    scheduler: Any, name: str, sigmas: list[float], told: list[dict[str, torch.Tensor]] | None = None
) -> None:
    """The scheduler lives in a variance-preserving space; its levels are set by hand."""
    x = torch.linspace(-30, 30, 8, dtype=torch.float64).view(1, 2, 2, 2)
    ours = run(name, x, sigmas, False)
    scheduler.set_timesteps(len(sigmas) - 1)
    scheduler.sigmas = torch.tensor(sigmas, dtype=torch.float64)
    theirs = x / math.sqrt(1 + sigmas[0] ** 2)
    for step, timestep in enumerate(scheduler.timesteps):
        sigma = sigmas[step]
        estimate = denoised(theirs * math.sqrt(1 + sigma**2), sigma, False)
        theirs = scheduler.step(estimate, timestep, theirs, **(told[step] if told else {})).prev_sample
    assert torch.allclose(ours, theirs * math.sqrt(1 + sigmas[-1] ** 2), rtol=1e-5, atol=1e-5)


@IGNORES_OLD_NUMPY
@pytest.mark.parametrize(("name", "kind"), [("dpmpp_2m_sde", "midpoint"), ("dpmpp_2m_sde_heun", "heun")])
def test_dpmpp_2m_sde_walks_as_diffusers_does_with_the_same_noise(name: str, kind: str) -> None:
    from diffusers import DPMSolverMultistepScheduler

    scheduler = DPMSolverMultistepScheduler(
        prediction_type="sample",
        algorithm_type="sde-dpmsolver++",
        solver_type=kind,
        lower_order_final=False,
        final_sigmas_type="sigma_min",
    )
    sigmas = [14.6, 8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.05]
    noise = RequestNoise(0, torch.zeros(1, 2, 2, 2, dtype=torch.float64), sigmas)
    steps = [noise.brownian(*pair) for pair in pairwise(sigmas)]
    assert_walks_as(scheduler, name, sigmas, [{"variance_noise": step} for step in steps])


def test_euler_on_a_flow_walks_as_diffusers_does() -> None:
    from diffusers import FlowMatchEulerDiscreteScheduler

    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    scheduler.set_timesteps(6)
    sigmas = scheduler.sigmas.tolist()
    theirs = x = torch.linspace(-3, 3, 8, dtype=torch.float64)
    for timestep, sigma in zip(scheduler.timesteps, sigmas, strict=False):
        velocity = (theirs - denoised(theirs, sigma, True)) / sigma
        theirs = scheduler.step(velocity, timestep, theirs, return_dict=False)[0]
    assert torch.allclose(run("euler", x, sigmas, True), theirs, atol=1e-5)
