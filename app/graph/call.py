"""Runs a node's own code: coroutines on the loop, plain functions in a worker thread, one at a time for a
pack.

Whatever that code raises comes out as an Exception or as JobInterrupted, so that it can end its job and
nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
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


async def call_plain(services: Services, node: Node, function: Callable[[], Any]) -> Any:
    """In a worker thread; should it return an awaitable, that is awaited here."""
    lock = services.pack_locks[node.spec.pack] if node.spec.pack else contextlib.nullcontext()
    async with lock:
        value = await _in_thread(services, function)
    return await contained(lambda: value) if inspect.isawaitable(value) else value


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
    if attempt.error is not None:
        raise attempt.error
    return attempt.value


@dataclass(frozen=True, slots=True)
class _Attempt:
    value: Any = None
    error: BaseException | None = None


def _attempt(function: Callable[[], Any]) -> _Attempt:
    """Errors travel as values: a future cannot hold a StopIteration, and a SystemExit would end the loop."""
    try:
        return _Attempt(function())
    except (Exception, JobInterrupted) as error:
        return _Attempt(error=error)
    except BaseException as error:
        exit = NodeExit(f"the node raised {type(error).__name__}").with_traceback(error.__traceback__)
        return _Attempt(error=exit)
