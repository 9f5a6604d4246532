"""A real server in the test's own loop, with small real nodes; a blocking call in the loop fails the test."""

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer
from blockbuster import BlockBuster, blockbuster_ctx
from PIL import Image

from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from nodes.context import NodeContext, NodeInputError
from nodes.declare import spec_of
from nodes.registry import Registry
from nodes.spec import NodeResult

Client = TestClient[web.Request, web.Application]


def source(text: str = "hello") -> str:
    return text


def show(ctx: NodeContext, text: str) -> NodeResult:
    return NodeResult((text,), ui={"text": [text]})


def picture(ctx: NodeContext, width: int = 8, prefix: str = "pic") -> NodeResult:
    path, saved = ctx.files.next_output(prefix, "png")
    Image.new("RGB", (width, width), (200, 30, 30)).save(path)
    return NodeResult((saved.filename,), ui={"images": [saved.as_ui()]})


async def slow(ctx: NodeContext, label: str, steps: int, pause_s: float) -> str:
    for step in range(steps):
        await asyncio.sleep(pause_s)
        ctx.progress(step + 1, steps)
        ctx.text(f"{step}")
        await asyncio.to_thread(ctx.preview, Image.new("RGB", (4, 4)))
    return "done"


def fail(ctx: NodeContext, text: str = "") -> str:
    raise NodeInputError(f"cannot work with '{text}'")


def need_file(ctx: NodeContext, name: str) -> str:
    return ctx.files.input(name).read_text()


def tell_hidden(ctx: NodeContext) -> NodeResult:
    return NodeResult(("",), ui={"text": [str(ctx.hidden["prompt"]), str(ctx.hidden["extra_pnginfo"])]})


class Gate:
    """Lets a test hold nodes back until it says go."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    async def wait(self, ctx: NodeContext, text: str = "through") -> str:
        while not self.opened.is_set():
            ctx.check_cancelled()
            await asyncio.sleep(0.01)
        return text


def small_registry(gate: Gate) -> Registry:
    async def hold(ctx: NodeContext, text: str = "through") -> str:
        return await gate.wait(ctx, text)

    return Registry(
        [
            spec_of(source, "Source", category="test"),
            spec_of(show, "Show", category="test", returns=[str], is_output=True),
            spec_of(picture, "Picture", category="test", returns=[str], is_output=True),
            spec_of(tell_hidden, "TellHidden", category="test", returns=[str], is_output=True),
            spec_of(slow, "Slow", category="test", not_idempotent=True),
            spec_of(fail, "Fail", category="test"),
            spec_of(need_file, "NeedFile", category="test"),
            spec_of(hold, "Hold", category="test", not_idempotent=True),
        ]
    )


class IdleRuntime:
    """No node of this registry asks a runtime for anything."""

    def stats(self) -> dict[str, Any]:
        return {}

    def unload(self) -> None:
        pass

    def close(self) -> None:
        pass


class IdleDiffusion(IdleRuntime):
    def stats(self) -> Any:
        from runtime.diffusion.api import DiffusionStats

        return DiffusionStats(0, 0, 0, 0, 0)


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    with blockbuster_ctx(scanned_modules=["app"]) as guard:
        yield guard


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(directories=Directories.below(tmp_path))


@pytest.fixture
async def client(config: Config, gate: Gate) -> AsyncIterator[Client]:
    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        return Studio(small_registry(gate), IdleRuntime(), IdleDiffusion())  # type: ignore[arg-type]

    async with TestClient(TestServer(build_app(config, load))) as opened:
        yield opened
        gate.opened.set()


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


@pytest.fixture
def listen(client: Client) -> Listen:
    async def connect(client_id: str, **features: Any) -> Listener:
        listener = Listener(await client.ws_connect("/ws", params={"clientId": client_id}))
        await listener.message()
        if features:
            await listener.socket.send_json({"type": "feature_flags", "data": features})
            assert (await listener.message())[0] == "feature_flags"
        return listener

    return connect


def png(color: tuple[int, ...] = (1, 2, 3), size: tuple[int, int] = (6, 4)) -> bytes:
    target = io.BytesIO()
    Image.new("RGB" if len(color) == 3 else "RGBA", size, color).save(target, "PNG")
    return target.getvalue()
