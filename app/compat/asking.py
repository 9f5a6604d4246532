"""Asks the runtimes on behalf of a pack's plain code: the node that runs here waits for the answer."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable
from typing import Any

from nodes.context import NodeContext, current_context


def running_node() -> NodeContext:
    context = current_context.get(None)
    if context is None:
        raise RuntimeError("models of this program work for a node that runs, and none runs here")
    return context


def answer(request: Any) -> Any:
    """Of a runtime of pictures, with the node's progress and previews on the way."""
    context = running_node()
    return waited(context.run(context.diffusion.submit(request)))


def waited(awaitable: Awaitable[Any]) -> Any:
    """In this thread, or beside it where an event loop turns already."""

    async def run() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    return _beside(run)


def _beside(run: Any) -> Any:
    outcome: list[Any] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(context.run(asyncio.run, run()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="asking for a pack")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
