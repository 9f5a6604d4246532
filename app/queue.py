"""Which job runs next. Pure: no clock, no threads, no event loop; the caller says what happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from app.graph.stop import StopSignal
from app.graph.validate import ValidGraph


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One accepted prompt. `extra_data` is what history shows; `sensitive` holds the keys that it never does.

    `stop` ends this job and no other, whether it waits or runs. `runs_alone` is for one that may have
    brought a process down, so that it takes nobody along if it does so again.
    """

    id: str
    number: float
    valid: ValidGraph
    client_id: str | None = None
    extra_data: Mapping[str, Any] = field(default_factory=dict)
    sensitive: Mapping[str, Any] = field(default_factory=dict)
    stop: StopSignal = field(default_factory=StopSignal)
    runs_alone: bool = False

    @property
    def packs(self) -> frozenset[str]:
        """Whose nodes are in it."""
        nodes = self.valid.graph.nodes.values()
        return frozenset(node.spec.pack for node in nodes if node.spec.pack is not None)

    def as_json(self) -> list[Any]:
        """The item of /queue and of history's `prompt`."""
        return [self.number, self.id, self.valid.graph.prompt, self.extra_data, list(self.valid.outputs)]


class JobQueue:
    """Waiting jobs start by number, then by arrival, at most `max_running` side by side.

    While a pack is late, jobs that wait for it leave their places to jobs that do not need it. Where one job
    runs at a time, it keeps its place.
    """

    def __init__(self, max_running: int = 8) -> None:
        assert max_running >= 1, max_running
        self.max_running = max_running
        self._arrivals = count()
        self.counted = 0
        self._waiting: dict[str, tuple[float, int, Job]] = {}
        self._running: dict[str, Job] = {}
        self._late_packs: frozenset[str] = frozenset()
        self._aside: frozenset[str] = frozenset()

    def next_number(self, front: bool = False) -> float:
        number = self.counted
        self.counted += 1
        return -number if front else number

    def put(self, job: Job) -> None:
        assert self.state(job.id) is None, f"job {job.id} is {self.state(job.id)} already"
        self._waiting[job.id] = (job.number, next(self._arrivals), job)

    def start_next(self) -> Job | None:
        """The next job, now running; None when nothing waits, no place is free, or one has to be alone."""
        ready = self._ready()
        if not ready:
            return None
        _, _, job = min(ready, key=lambda entry: entry[:2])
        if self._running and (job.runs_alone or any(one.runs_alone for one in self._running.values())):
            return None
        del self._waiting[job.id]
        self._running[job.id] = job
        return job

    def _ready(self) -> list[tuple[float, int, Job]]:
        if len(self._running) < self.max_running:
            return list(self._waiting.values())
        if len(self._running.keys() - self._aside) >= self.max_running:
            return []
        return [entry for entry in self._waiting.values() if not self._late_packs & entry[2].packs]

    def hold_up(self, packs: frozenset[str], job_ids: frozenset[str]) -> None:
        """These packs are late, and these jobs wait for one; it holds until the next word on it."""
        if self.max_running > 1:
            self._late_packs, self._aside = packs, job_ids

    def finish(self, job_id: str) -> None:
        del self._running[job_id]

    def delete(self, job_ids: Iterable[str]) -> list[Job]:
        """Takes waiting jobs out and returns them; running and unknown ids are left alone."""
        return [self._waiting.pop(id)[2] for id in dict.fromkeys(job_ids) if id in self._waiting]

    def clear(self) -> list[Job]:
        return self.delete(list(self._waiting))

    def stop(self, job_id: str | None = None) -> list[Job]:
        """Interrupts a running job, or all of them; returns those that it reached."""
        reached = [job for id, job in self._running.items() if job_id in (None, id)]
        for job in reached:
            job.stop.set()
        return reached

    def find(self, job_id: str) -> Job | None:
        waiting = self._waiting.get(job_id)
        return self._running.get(job_id) if waiting is None else waiting[2]

    def state(self, job_id: str) -> str | None:
        """ "pending" or "running"; None for a job that is not here."""
        return "running" if job_id in self._running else "pending" if job_id in self._waiting else None

    @property
    def waiting(self) -> list[Job]:
        """In the order in which they will start."""
        return [job for _, _, job in sorted(self._waiting.values(), key=lambda entry: entry[:2])]

    @property
    def running(self) -> list[Job]:
        return list(self._running.values())

    @property
    def remaining(self) -> int:
        return len(self._waiting) + len(self._running)
