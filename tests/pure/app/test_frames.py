import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from app.frames import framed

SIZES = (0, 1, 125, 126, 65_535, 65_536, 200_000)


@pytest.mark.parametrize("sent", ["x", b"x"])
async def test_a_client_reads_what_was_framed(sent: str | bytes) -> None:
    messages = [sent * size for size in SIZES]

    async def connect(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.transport is not None
        request.transport.write(b"".join(framed(message) for message in messages))
        async for _ in socket:
            pass
        return socket

    app = web.Application()
    app.router.add_get("/ws", connect)
    async with TestClient(TestServer(app)) as client, client.ws_connect("/ws") as socket:
        assert [(await asyncio.wait_for(socket.receive(), 5)).data for _ in SIZES] == messages


def test_a_text_of_any_script_is_utf8() -> None:
    assert framed("é") == b"\x81\x02\xc3\xa9"
