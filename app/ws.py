"""One websocket connection: one task writes what the bus holds, one loop reads the handshake.

What waits goes out in one write. A client may be silent for as long as it likes: a simple one that waits for
the answer to a post reads nothing, and answers no ping.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid

from aiohttp import WSCloseCode, WSMsgType, web

from app import wire
from app.api.read import query_int
from app.bus import Direct, Overrun, Replaced, Subscription
from app.config import Config
from app.frames import framed
from app.keys import BUS, CONFIG, JOBS
from app.progress import INTERVAL_S
from app.replay import Numbered

log = logging.getLogger(__name__)

SEND_TIMEOUT_S = 30
MOST_UNSENT_BYTES = 64 * 1024
MESSAGES_A_WRITE = 64
# proxies close connections on which nothing happens for a minute
PING_S = 30
OPEN_SOCKETS = web.AppKey("open_sockets", set[web.WebSocketResponse])


async def connect(request: web.Request) -> web.WebSocketResponse:
    since = query_int(request, "since")
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    client_id = request.query.get("clientId") or uuid.uuid4().hex
    bus, translator = request.app[BUS], wire.Wire(since)
    greetings = _greetings(request, client_id, since)
    subscription = bus.subscribe(client_id, *greetings, since=since, gap=Direct(translator.missed()))
    open_sockets = request.app[OPEN_SOCKETS]
    open_sockets.add(socket)
    writer = asyncio.create_task(_write(request, socket, subscription, translator))
    try:
        await _read(socket, subscription, translator, request.app[CONFIG])
    finally:
        bus.unsubscribe(subscription)
        open_sockets.discard(socket)
        writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writer
    return socket


async def close_all(app: web.Application) -> None:
    sockets = app[OPEN_SOCKETS]
    for socket in tuple(sockets):
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"server is closing")


def _greetings(request: web.Request, client_id: str, since: int | None) -> list[Direct]:
    """Who counts events is told by them where its prompt is."""
    greetings = [Direct(wire.status(request.app[JOBS].remaining(), sid=client_id))]
    running = request.app[BUS].running_node(client_id)
    if running is not None and since is None:
        greetings.append(Direct(wire.message("executing", {"node": running.node.node_id})))
    return greetings


async def _read(
    socket: web.WebSocketResponse, subscription: Subscription, translator: wire.Wire, config: Config
) -> None:
    is_first = True
    async for received in socket:
        if received.type is not WSMsgType.TEXT:
            continue
        features = wire.client_features(received.data) if is_first else None
        is_first = False
        if features is not None:
            translator.features = features
            answer = wire.message(
                "feature_flags", wire.server_features(config.max_upload_bytes, config.assets)
            )
            subscription.put(Direct(answer))


async def _next_frames(
    socket: web.WebSocketResponse, subscription: Subscription, translator: wire.Wire
) -> list[wire.Frame]:
    try:
        async with asyncio.timeout(INTERVAL_S if translator.owes else PING_S):
            messages = [await subscription.receive()]
    except TimeoutError:
        if not translator.owes:
            await socket.ping()
        return translator.owed_frames()
    messages += subscription.unread(MESSAGES_A_WRITE - 1)
    return [frame for message in messages for frame in _frames(message, translator)]


def _frames(message: Numbered | Direct, translator: wire.Wire) -> list[wire.Frame]:
    return [message.frame] if isinstance(message, Direct) else translator.numbered_frames(message)


async def _sent(transport: asyncio.Transport, frames: list[wire.Frame]) -> None:
    """Returns once the client has taken nearly all of it."""
    transport.write(b"".join([framed(frame) for frame in frames]))
    if transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            while transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
                await asyncio.sleep(0.02)


async def _write(
    request: web.Request,
    socket: web.WebSocketResponse,
    subscription: Subscription,
    translator: wire.Wire,
) -> None:
    try:
        while True:
            frames = await _next_frames(socket, subscription, translator)
            transport = request.transport
            if socket.closed or transport is None or transport.is_closing():
                return
            await _sent(transport, frames)
    except ConnectionError:
        return
    except Replaced as reason:
        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=str(reason).encode()[:120])
    except (Overrun, TimeoutError) as reason:
        log.warning("dropping a client that does not read: %s", reason or f"a frame took {SEND_TIMEOUT_S} s")
        # a closing handshake would wait for the client that does not read
        if request.transport is not None:
            request.transport.abort()
    # one connection's fault must not end silently: the client would wait for ever
    except Exception:
        log.exception("writing to client %s failed", subscription.client_id)
        await socket.close(code=WSCloseCode.INTERNAL_ERROR)
