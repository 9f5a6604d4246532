"""What running a job takes from the rest of the server, made once and shared by all jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from app.events import Event
from app.graph.cache import ResultCache
from app.graph.flights import Flights
from app.graph.loops import PackLoops
from app.graph.parse import Specs
from app.graph.turns import PackTurns
from nodes.context import NodeFiles
from nodes.spec import Library, NodeResult
from runtime.diffusion.api import DiffusionRuntime
from runtime.llm.api import LanguageRuntime

MAX_THREADS = 64


def worker_threads() -> Executor:
    return ThreadPoolExecutor(MAX_THREADS, "node")


class Faces(Protocol):
    """Models as ComfyUI's packs know them, and back."""

    def wrapped(self, value: Any) -> Any: ...

    def unwrapped(self, value: Any) -> Any: ...


class NoFaces:
    def wrapped(self, value: Any) -> Any:
        return value

    def unwrapped(self, value: Any) -> Any:
        return value


# Given the job's id and what a node has answered, says what the client is told of it.
Saved = Callable[[str, NodeResult], Awaitable[NodeResult]]


async def as_it_is(_job_id: str, result: NodeResult) -> NodeResult:
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """`publish` may be called from any thread. `threads` run the plain functions of nodes.

    `pack_turns` keep a pack's plain functions to one at a time, because packs are written for one prompt at a
    time. `keeps` says which results outlive their job: all that the cache has room for, those of the last
    job, or nothing, and then no node shares another's result. `saved` hears of every result, whose words
    for the client may name files.
    """

    specs: Specs
    library: Library
    files: NodeFiles
    llm: LanguageRuntime
    diffusion: DiffusionRuntime
    publish: Callable[[Event], None]
    threads: Executor = field(default_factory=worker_threads)
    cache: ResultCache = field(default_factory=ResultCache)
    flights: Flights = field(default_factory=Flights)
    pack_turns: PackTurns = field(default_factory=PackTurns)
    pack_loops: PackLoops = field(default_factory=PackLoops)
    faces: Faces = field(default_factory=NoFaces)
    keeps: Literal["all", "last", "nothing"] = "all"
    saved: Saved = as_it_is
