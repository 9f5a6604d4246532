"""Noise levels against measured vectors."""

from __future__ import annotations

from itertools import pairwise

import pytest

from runtime.diffusion.beta import beta_quantiles
from runtime.diffusion.sigmas import NoiseSchedule, part, spaced, spacings, walk
from runtime.platform.errors import Unsupported

SCHEDULES = {
    "sd15": NoiseSchedule.discrete(),
    "sd3": NoiseSchedule.flow(shift=3.0),
    "flux": NoiseSchedule.flux(mu=1.15),
    "schnell": NoiseSchedule.flow(shift=1.0, multiplier=1.0),
}

VECTORS = """
sd15 simple 14.6146 7.29735 4.08173 2.49253 1.61289 1.06895 .693205 .397746 0
sd15 sgm_uniform 14.6146 7.30198 4.08608 2.49597 1.61558 1.07116 .69515 .399701 0
sd15 karras 14.6146 7.90293 4.02774 1.91036 .828868 .32112 .107198 .0291672 0
sd15 exponential 14.6146 6.01297 2.47394 1.01787 .418785 .172303 .0708914 .0291672 0
sd15 ddim_uniform 7.37184 4.1167 2.51092 1.62369 1.07603 .698398 .402218 .0413144 0
sd15 beta 14.6146 10.4835 5.68659 2.96361 1.61828 .919833 .515391 .24327 0
sd15 normal 14.6146 6.678 3.52206 2.06064 1.27683 .79126 .439666 .0291672 0
sd15 linear_quadratic 14.6146 14.5233 14.432 14.3406 14.2493 13.2902 10.5956 6.16555 0
sd15 kl_optimal 14.6146 3.49348 1.87812 1.18787 .777037 .483187 .244328 .0291672 0
sd3 simple 1 .954545 .9 .833333 .75 .642857 .5 .3 0
sd3 sgm_uniform 1 .954694 .900359 .833998 .751121 .644686 .502985 .305009 0
sd3 karras 1 .555413 .292276 .144143 .0656554 .0270688 .00981303 .00299401 0
sd3 normal 1 .947542 .882788 .800837 .693793 .548046 .337972 .00892857 0
sd3 ddim_uniform .955338 .900958 .834516 .751497 .644812 .50266 .303828 .0059761 0
sd3 beta 1 .980249 .933535 .859522 .750749 .596386 .392171 .155914 0
flux simple 1 .956724 .904531 .840349 .759511 .654567 .512844 .310901 0
flux normal 1 .94989 .887627 .808181 .703298 .558435 .345348 .000996524 0
flux sgm_uniform 1 .956739 .904567 .840417 .759626 .654757 .51316 .311442 0
flux beta 1 .981152 .936776 .865455 .759584 .608045 .402498 .161048 0
flux karras 1 .486951 .218336 .0882299 .0311522 .00916584 .00207926 .000315751 0
flux ddim_uniform .956799 .904623 .840463 .759657 .65476 .513111 .311293 .000631366 0
schnell simple 1 .875 .75 .625 .5 .375 .25 .125 0
schnell beta 1 .943 .824 .671 .501 .33 .177 .058 0
schnell normal 1 .857286 .714571 .571857 .429143 .286429 .143714 .001 0
"""


@pytest.mark.parametrize("line", VECTORS.strip().splitlines())
def test_levels_equal_the_measured_ones(line: str) -> None:
    model, scheduler, *numbers = line.split()
    levels = spaced(SCHEDULES[model], scheduler, 8)
    assert levels == pytest.approx([float(number) for number in numbers], rel=6e-6, abs=1e-9)


def test_all_nine_spacings_are_offered_in_the_usual_order() -> None:
    expected = "simple sgm_uniform karras exponential ddim_uniform beta normal linear_quadratic kl_optimal"
    assert list(spacings) == expected.split()


@pytest.mark.parametrize("name", list(spacings))
@pytest.mark.parametrize("steps", [1, 2, 3, 20, 1001])
def test_every_spacing_falls_to_zero_for_any_count(name: str, steps: int) -> None:
    for schedule in SCHEDULES.values():
        levels = spaced(schedule, name, steps)
        assert levels[-1] == 0
        assert all(a >= b for a, b in pairwise(levels))


def test_levels_at_parts_of_the_way() -> None:
    sd = SCHEDULES["sd15"]
    assert sd.percent_to_sigma(0.2) == pytest.approx(5.09241, rel=1e-5)
    assert sd.percent_to_sigma(0.5) == pytest.approx(1.61558, rel=1e-5)
    assert sd.percent_to_sigma(0) == pytest.approx(999999999.9)
    assert sd.percent_to_sigma(1) == 0
    assert SCHEDULES["sd3"].percent_to_sigma(0.25) == pytest.approx(0.9)
    assert SCHEDULES["flux"].percent_to_sigma(0) == 1


@pytest.mark.parametrize("name", ["sd15", "sd3"])
def test_timestep_and_sigma_undo_each_other_on_the_table(name: str) -> None:
    schedule = SCHEDULES[name]
    if name == "sd15":
        for i in (0, 1, 500, 998, 999):
            assert schedule.timestep(schedule.table[i]) == i
            assert schedule.sigma(i) == pytest.approx(schedule.table[i], rel=1e-6)
    else:
        assert schedule.timestep(0.25) == 250


def test_zero_terminal_snr_ends_in_almost_pure_noise() -> None:
    schedule = NoiseSchedule.discrete(zero_terminal_snr=True)
    assert schedule.sigma_max == pytest.approx(4518.7, rel=1e-3)
    assert schedule.sigma_min == pytest.approx(0.0291672, rel=1e-5)


def test_the_embedded_model_walks_straight_down() -> None:
    levels = spaced(NoiseSchedule.flow(shift=1.0), "simple", 4)
    assert levels == pytest.approx([1, 0.75, 0.5, 0.25, 0])


def test_a_partial_walk_keeps_the_end_of_a_longer_one() -> None:
    schedule = SCHEDULES["sd15"]
    assert walk(schedule, "simple", 4, 0.5) == spaced(schedule, "simple", 8)[-5:]
    assert walk(schedule, "simple", 4, 0.0) == []
    assert walk(schedule, "simple", 4, 1.0) == spaced(schedule, "simple", 4)


def test_some_samplers_leave_out_the_last_but_one_level() -> None:
    schedule = SCHEDULES["sd15"]
    levels = walk(schedule, "karras", 5, skips_penultimate=True)
    full = spaced(schedule, "karras", 6)
    assert levels == [*full[:5], 0.0]


def test_parts_of_a_walk() -> None:
    levels = [4.0, 3.0, 2.0, 1.0, 0.0]
    assert part(levels, 1, 3, full_denoise=False) == [3.0, 2.0, 1.0]
    assert part(levels, 1, 3, full_denoise=True) == [3.0, 2.0, 0.0]
    assert part(levels, 0, 10_000, full_denoise=True) == levels
    assert part(levels, 4, 10_000, full_denoise=True) == []


def test_an_unknown_scheduler_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Unsupported, match="simple, sgm_uniform"):
        spaced(SCHEDULES["sd15"], "linear", 4)


def test_the_beta_quantile_is_symmetric_and_known_at_easy_points() -> None:
    assert beta_quantiles([0.0, 0.5, 1.0], 0.6, 0.6) == [0.0, 0.5, 1.0]
    assert beta_quantiles([0.3, 0.95], 1, 1) == pytest.approx([0.3, 0.95])
    assert beta_quantiles([0.25, 0.81], 2, 1) == pytest.approx([0.5, 0.9])
    low, high = beta_quantiles([0.1, 0.9], 0.6, 0.6)
    assert low == pytest.approx(1 - high)
