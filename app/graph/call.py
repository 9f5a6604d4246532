"""Runs a node's own code: coroutines on the loop (a pack's on the pack's own), plain functions in a worker
thread, one at a time for a pack.

Whatever that code raises comes out as an Exception or as JobInterrupted, so that it can end its job and
nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from app.graph.attempt import Attempt, NodeExit, attempt, exit_of
from app.graph.parse import Node
from app.graph.services import Services
from nodes.context import JobInterrupted

R = TypeVar("R")


async def contained(function: Callable[[], Any]) -> Any:
    """Awaits what `function` returns."""
    try:
        return await function()
    except (SystemExit, KeyboardInterrupt) as error:
        raise NodeExit(f"the node raised {type(error).__name__}") from error


async def call_coroutine(services: Services, job_id: str, node: Node, function: Callable[[], Any]) -> Any:
    """`function` returns an awaitable. A pack that blocks in one holds up its own loop and nobody else."""
    pack = node.spec.pack
    if pack is None:
        return await contained(function)
    begun: list[bool] = []

    def begin() -> Coroutine[Any, Any, Attempt]:
        return _attempted(function, begun)

    turns = services.pack_turns
    with turns.waits(pack, job_id), turns.begins(pack, lambda: bool(begun)):
        made = await services.pack_loops.run(pack, begin)
    return made.outcome()


async def call_plain(services: Services, job_id: str, node: Node, function: Callable[[], Any]) -> Any:
    """In a worker thread; should it return an awaitable, that is awaited here."""
    if node.spec.pack is None:
        value = await _in_thread(services, function)
    else:
        value = (await services.pack_turns.run(node.spec.pack, job_id, function)).outcome()
    if inspect.isawaitable(value):
        return await call_coroutine(services, job_id, node, lambda: value)
    return value


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
    """A cancelled caller still waits: this program's own functions look at the stop signal."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(services.threads, context.run, attempt, function)
    try:
        made = await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise
    return made.outcome()


async def _attempted(function: Callable[[], Any], begun: list[bool]) -> Attempt:
    begun.append(True)
    try:
        return Attempt(await function())
    except (Exception, JobInterrupted) as error:
        return Attempt(error=error)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return Attempt(error=exit_of(error))
