"""Events of several running requests as one stream, server-sent events, and callers who leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from aiohttp import web

from app.errors import openai_body
from app.keys import CONFIG
from app.openai.errors import known_fault
from runtime.platform.handle import Cancelled, CancelledEvent, Done, Event, Failed, Handle

_LOOK_EVERY_S = 0.1
# Proxies and clients drop connections on which nothing comes for half a minute.
_SAY_SOMETHING_EVERY_S = 10.0

Parts = AsyncGenerator[dict[str, Any]]


@asynccontextmanager
async def while_listening(request: web.Request, handles: Sequence[Handle[Any]]) -> AsyncIterator[None]:
    """Nobody computes for a caller who has left, or after a fault."""
    watch = asyncio.create_task(_watch(request, handles))
    try:
        yield
    finally:
        watch.cancel()
        for handle in handles:
            if not handle.finished:
                handle.cancel()


async def _watch(request: web.Request, handles: Sequence[Handle[Any]]) -> None:
    while request.transport is not None and not request.transport.is_closing():
        await asyncio.sleep(_LOOK_EVERY_S)
    for handle in handles:
        handle.cancel()


async def merged(handles: Sequence[Handle[Any]]) -> AsyncGenerator[tuple[int, Event]]:
    """Each handle's events with its number, as they come. The first fault ends all."""
    queue: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()

    async def pump(number: int, handle: Handle[Any]) -> None:
        async for event in handle:
            queue.put_nowait((number, event))

    pumps = [asyncio.create_task(pump(number, handle)) for number, handle in enumerate(handles)]
    try:
        running = len(handles)
        while running:
            number, event = await queue.get()
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, CancelledEvent):
                raise Cancelled(event.request_id)
            running -= isinstance(event, Done)
            yield number, event
    finally:
        for task in pumps:
            task.cancel()


async def send(request: web.Request, parts: Parts, ends_with: str | None = "[DONE]") -> web.StreamResponse:
    """What fails before the first part is an HTTP error; later faults become the last part."""
    async with aclosing(parts):
        first = await anext(parts)
        response = await _begin(request)
        try:
            await _write(response, first)
            while (part := await _next(response, parts)) is not None:
                await _write(response, part)
            if ends_with is not None:
                await response.write(f"data: {ends_with}\n\n".encode())
        except ConnectionError:
            # the caller has left, and `while_listening` cancels
            return response
        # the answer has begun: any fault can only be told in it
        except Exception as error:
            await _write_last(response, openai_body(known_fault(error)))
        return response


async def _next(response: web.StreamResponse, parts: Parts) -> dict[str, Any] | None:
    """Comments, which clients pass over, keep the connection alive meanwhile. None at the end."""
    coming = asyncio.ensure_future(anext(parts, None))
    try:
        while not (await asyncio.wait({coming}, timeout=_SAY_SOMETHING_EVERY_S))[0]:
            await response.write(b": still at work\n\n")
    except BaseException:
        coming.cancel()
        await asyncio.wait({coming})
        raise
    return await coming


async def _begin(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    origin = request.app[CONFIG].cors_origin
    if origin is not None:
        response.headers["Access-Control-Allow-Origin"] = origin
    await response.prepare(request)
    return response


async def _write(response: web.StreamResponse, part: dict[str, Any]) -> None:
    """Events that have a type bear it as their name too, as the Responses API has it."""
    name = f"event: {part['type']}\n" if "type" in part else ""
    await response.write(f"{name}data: {json.dumps(part)}\n\n".encode())


async def _write_last(response: web.StreamResponse, part: dict[str, Any]) -> None:
    try:
        await _write(response, part)
    except ConnectionError:
        return
