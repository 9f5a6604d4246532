"""A real server in the test's own loop, with small real nodes; a blocking call in the loop fails the test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from blockbuster import BlockBuster, blockbuster_ctx

from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, IdleRuntime, small_registry
from tests.cpu.server.talk import Client, Listen, Listener


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
