"""Which rows go to the device next: grouped by key, the longest waiting first, within a limit a key.

Pure: rows and outcomes go in, groups and verdicts come out. It knows no tensor, no clock and no thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

GROWTH_AFTER_FULL_GROUPS = 16


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a request wants computed; `index` is its place among the request's wishes.

    Rows of a key may share a forward of at most `limit`. A row with a `hold_until` gives others of its key
    until then to arrive.
    """

    request_id: str
    index: int
    key: Hashable
    limit: int
    hold_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one key, to be computed together."""

    key: Hashable
    rows: tuple[Row, ...]


class Scheduler:
    """Rows wait by key in order of arrival. One group is out at a time and comes back through one outcome."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[tuple[int, Row]]] = {}
        self._learnt_limits: dict[Hashable, int] = {}
        self._full_groups: dict[Hashable, int] = {}
        self._failed_alone: set[Row] = set()
        self._out: Group | None = None
        self._arrivals = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Rows that are added together arrived at the same time."""
        self._arrivals += 1
        for row in rows:
            self._waiting.setdefault(row.key, deque()).append((self._arrivals, row))

    def drop(self, request_id: str) -> None:
        """Forget the waiting rows of a request. Those that are out come back and are nobody's."""
        self._failed_alone = {row for row in self._failed_alone if row.request_id != request_id}
        for key in list(self._waiting):
            kept = deque(entry for entry in self._waiting[key] if entry[1].request_id != request_id)
            self._keep(key, kept)

    def schedule(self, now: float) -> Group | None:
        """The group whose first row has waited longest, so that every key gets its turn."""
        assert self._out is None, f"{self._out} is still out"
        ready = [key for key in self._waiting if self._is_ready(key, now)]
        if not ready:
            return None
        key = min(ready, key=lambda key: self._waiting[key][0][0])
        queue = self._waiting[key]
        rows = tuple(queue.popleft()[1] for _ in range(min(len(queue), self.limit(key))))
        self._keep(key, queue)
        self._out = Group(key, rows)
        return self._out

    def ready_at(self) -> float | None:
        """When the first held key may go; None where nothing waits."""
        times = [queue[0][1].hold_until for queue in self._waiting.values()]
        return min(times, default=None)

    def done(self, group: Group) -> None:
        self._take_back(group)
        self._failed_alone.difference_update(group.rows)
        if group.key in self._learnt_limits and len(group.rows) == self._learnt_limits[group.key]:
            full = self._full_groups.get(group.key, 0) + 1
            self._full_groups[group.key] = full % GROWTH_AFTER_FULL_GROUPS
            self._learnt_limits[group.key] += full == GROWTH_AFTER_FULL_GROUPS

    def out_of_memory(self, group: Group) -> bool:
        """True: the rows wait again, first in line, in halves. False: a single row failed twice."""
        self._take_back(group)
        if len(group.rows) == 1:
            if group.rows[0] in self._failed_alone:
                return False
            self._failed_alone.add(group.rows[0])
        self._learnt_limits[group.key] = max(1, len(group.rows) // 2)
        self._full_groups.pop(group.key, None)
        queue = self._waiting.setdefault(group.key, deque())
        queue.extendleft((0, row) for row in reversed(group.rows))
        return True

    def limit(self, key: Hashable) -> int:
        own = self._waiting[key][0][1].limit
        return max(1, min(own, self._learnt_limits.get(key, own)))

    @property
    def num_waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    def _is_ready(self, key: Hashable, now: float) -> bool:
        queue = self._waiting[key]
        return queue[0][1].hold_until <= now or len(queue) >= self.limit(key)

    def _keep(self, key: Hashable, queue: deque[tuple[int, Row]]) -> None:
        if queue:
            self._waiting[key] = queue
        else:
            self._waiting.pop(key, None)

    def _take_back(self, group: Group) -> None:
        assert group is self._out, f"{group} was not out, but {self._out}"
        self._out = None
