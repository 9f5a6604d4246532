"""A real server with packs written for the test, this program's own nodes, and runtimes that nobody asks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from app.compat.finder import FINDER
from app.compat.packs import run_prestartup
from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio, load_nodes
from tests.cpu.server.small_nodes import IdleDiffusion, IdleRuntime
from tests.cpu.server.talk import Client

Serve = Callable[..., Awaitable[Client]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Files by their path below custom_nodes; headers, should a pack ask for some."""
    directories = Directories.below(tmp_path)

    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        run_prestartup([directories.custom_nodes], None)
        registry = load_nodes(config, files)
        return Studio(registry, IdleRuntime(), IdleDiffusion())  # type: ignore[arg-type]

    async with AsyncExitStack() as stack:

        async def serve(files: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Client:
            for name, text in files.items():
                path = directories.custom_nodes / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            app = build_app(Config(directories=directories, device="cpu"), load)
            client = await stack.enter_async_context(TestClient(TestServer(app)))
            assert (await client.get("/object_info", headers=headers)).status == 200
            return client

        yield serve
    FINDER.roots[:] = [root for root in FINDER.roots if root != directories.custom_nodes]
    prefix = str(tmp_path).replace(".", "_x_")
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[name]
