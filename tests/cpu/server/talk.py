"""How tests talk to a server: graphs, posts, and a websocket that reads like a ComfyUI client."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType, web
from aiohttp.test_utils import TestClient
from PIL import Image

Client = TestClient[web.Request, web.Application]


def graph(*nodes: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Nodes numbered from "1"."""
    return {str(i): {"class_type": kind, "inputs": inputs} for i, (kind, inputs) in enumerate(nodes, start=1)}


SHOWN = graph(("Source", {"text": "hello"}), ("Show", {"text": ["1", 0]}))


async def post(client: Client, prompt: Any, **body: Any) -> tuple[int, Any]:
    answer = await client.post("/prompt", json={"prompt": prompt, **body})
    return answer.status, await answer.json()


class Listener:
    """A websocket that reads like a ComfyUI client."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket

    async def message(self) -> tuple[str, Any]:
        received = await asyncio.wait_for(self.socket.receive(), 10)
        if received.type is WSMsgType.BINARY:
            return "binary", received.data
        assert received.type is WSMsgType.TEXT, received
        parsed = json.loads(received.data)
        return parsed["type"], parsed["data"]

    async def until_end(self, prompt_id: str) -> list[tuple[str, Any]]:
        """Every message up to and with the last of the prompt."""
        messages = [await self.message()]
        while messages[-1] != ("executing", {"node": None, "prompt_id": prompt_id}):
            messages.append(await self.message())
        return messages


Listen = Callable[[str], Awaitable[Listener]]


def png(color: tuple[int, ...] = (1, 2, 3), size: tuple[int, int] = (6, 4)) -> bytes:
    target = io.BytesIO()
    Image.new("RGB" if len(color) == 3 else "RGBA", size, color).save(target, "PNG")
    return target.getvalue()
