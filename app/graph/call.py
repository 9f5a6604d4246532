"""Runs a node's own code: coroutines on the loop (a pack's on the pack's own), plain functions in a worker
thread, one at a time for a pack.

Whatever that code raises comes out as an Exception or as JobInterrupted, so that it can end its job and
nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from app.graph.parse import Node
from app.graph.services import Services
from nodes.context import JobInterrupted

R = TypeVar("R")


class NodeExit(Exception):
    """The node's code tried to leave the process."""


async def contained(function: Callable[[], Any]) -> Any:
    """Awaits what `function` returns."""
    try:
        return await function()
    except (SystemExit, KeyboardInterrupt) as error:
        raise NodeExit(f"the node raised {type(error).__name__}") from error


async def call_coroutine(services: Services, node: Node, function: Callable[[], Any]) -> Any:
    """`function` returns an awaitable. A pack that blocks in one holds up its own loop and nobody else."""
    if node.spec.pack is None:
        return await contained(function)
    attempt = await services.pack_loops.run(node.spec.pack, functools.partial(_attempted, function))
    return attempt.outcome()


async def call_plain(services: Services, node: Node, function: Callable[[], Any]) -> Any:
    """In a worker thread; should it return an awaitable, that is awaited here."""
    lock = services.pack_locks[node.spec.pack] if node.spec.pack else contextlib.nullcontext()
    async with lock:
        value = await _in_thread(services, function)
    return await call_coroutine(services, node, lambda: value) if inspect.isawaitable(value) else value


async def together(calls: Sequence[Coroutine[Any, Any, R]]) -> list[R]:
    """All of them side by side; the first error ends the others, and none is left running."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in_thread(services: Services, function: Callable[[], Any]) -> Any:
    """A cancelled caller still waits: nothing stops a thread but its own look at the stop signal."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(services.threads, context.run, _attempt, function)
    try:
        attempt = await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise
    return attempt.outcome()


@dataclass(frozen=True, slots=True)
class _Attempt:
    value: Any = None
    error: BaseException | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _attempt(function: Callable[[], Any]) -> _Attempt:
    """Errors travel as values: a future cannot hold a StopIteration, and a SystemExit would end the loop."""
    try:
        return _Attempt(function())
    except (Exception, JobInterrupted) as error:
        return _Attempt(error=error)
    except BaseException as error:
        return _Attempt(error=_exit_of(error))


async def _attempted(function: Callable[[], Any]) -> _Attempt:
    try:
        return _Attempt(await function())
    except (Exception, JobInterrupted) as error:
        return _Attempt(error=error)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _Attempt(error=_exit_of(error))


def _exit_of(error: BaseException) -> NodeExit:
    return NodeExit(f"the node raised {type(error).__name__}").with_traceback(error.__traceback__)
