"""Frames are chosen at even distances in time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runtime.llm import frames

TIMES = st.lists(st.integers(1, 50), min_size=1, max_size=80).map(
    lambda gaps: [sum(gaps[: at + 1]) / 10 for at in range(len(gaps))]
)


def test_all_of_a_short_video_are_taken() -> None:
    assert frames.sample([0.0, 0.5, 1.0], fps=2, fewest=4, most=8) == [0, 1, 2]


def test_a_still_is_one_frame() -> None:
    assert frames.sample([0.0], fps=2, fewest=4, most=8) == [0]


def test_ten_seconds_at_thirty_a_second_become_twenty_frames() -> None:
    times = [number / 30 for number in range(300)]
    chosen = frames.sample(times, fps=2, fewest=4, most=768)
    assert len(chosen) == 20
    assert (chosen[0], chosen[-1]) == (0, 299)
    gaps = {second - first for first, second in pairwise(chosen)}
    assert gaps == {15, 16}


def test_the_bounds_hold() -> None:
    times = [number / 30 for number in range(300)]
    assert len(frames.sample(times, fps=2, fewest=4, most=8)) == 8
    assert len(frames.sample(times[:30], fps=2, fewest=4, most=8)) == 4


def test_uneven_times_are_met_by_the_nearest_frames() -> None:
    times = [0.0, 0.1, 0.2, 0.3, 5.0, 10.0]
    assert frames.sample(times, fps=0.3, fewest=1, most=8) == [0, 4, 5]


@given(TIMES, st.floats(0.01, 60), st.integers(1, 8), st.integers(8, 40))
def test_chosen_frames_ascend_and_are_there(times: list[float], fps: float, fewest: int, most: int) -> None:
    chosen = frames.sample(times, fps, fewest, most)
    assert chosen == sorted(set(chosen))
    assert 1 <= len(chosen) <= most
    assert set(chosen) <= set(range(len(times)))
