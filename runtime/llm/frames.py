"""Which frames of a video a model sees."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def rate(times: Sequence[float]) -> float:
    """Frames a second; a video that does not last has one."""
    lasts = times[-1] - times[0]
    return (len(times) - 1) / lasts if lasts > 0 else 1.0


def sample(times: Sequence[float], fps: float, fewest: int, most: int) -> list[int]:
    """Indices of frames at even distances in time, about `fps` a second, within bounds and without repeats.

    `times` are those of the frames in seconds, ascending. There are never more than the video has.
    """
    wanted = min(max(int(len(times) / rate(times) * fps), fewest), most, len(times))
    if wanted == len(times):
        return list(range(len(times)))
    first, last = times[0], times[-1]
    step = (last - first) / max(wanted - 1, 1)
    return sorted({_nearest(times, first + step * number) for number in range(wanted)})


def _nearest(times: Sequence[float], instant: float) -> int:
    after = min(bisect_left(times, instant), len(times) - 1)
    before = max(after - 1, 0)
    return before if instant - times[before] <= times[after] - instant else after
