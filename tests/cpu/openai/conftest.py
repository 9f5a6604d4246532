"""A real server over the real language runtime: a tiny random model and the packaged SmolLM2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer
from blockbuster import BlockBuster, blockbuster_ctx
from openai import AsyncOpenAI

from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from runtime.llm.engine import Engine
from runtime.platform.installed import packaged_language_models
from tests.cpu.llm.conftest import save_random, tiny_llama
from tests.cpu.llm.processors.conftest import SAVES, TOOLS
from tests.cpu.llm.thinker import save_thinker
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, small_registry

SMOL = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    with blockbuster_ctx(scanned_modules=["app"]) as guard:
        yield guard


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("openai")
    tiny = save_random(tiny_llama(context=1024), folder / "tiny")
    SAVES["llava"](folder / "llava", TOOLS)
    thinker = save_thinker(folder / "thinker")
    known = {"tiny": tiny, "llava": folder / "llava", "thinker": thinker, **packaged_language_models()}
    made = Engine(lambda: known, threads=1, num_pages=512)
    yield made
    made.close()


class LentEngine:
    """The engine of all tests of the session: a server that ends does not close it."""

    def __init__(self, engine: Engine) -> None:
        self.models, self.submit, self.stats = engine.models, engine.submit, engine.stats

    def close(self) -> None:
        pass


@pytest.fixture
def studio_of(engine: Engine) -> Callable[[Config, Files, Metrics], Studio]:
    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        return Studio(small_registry(Gate()), LentEngine(engine), IdleDiffusion())  # type: ignore[arg-type]

    return load


@pytest.fixture
async def server(
    studio_of: Callable[[Config, Files, Metrics], Studio], tmp_path: Path
) -> AsyncIterator[TestServer]:
    config = Config(directories=Directories.below(tmp_path))
    async with TestServer(build_app(config, studio_of)) as opened:
        yield opened


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=str(server.make_url("/v1")), api_key="none", max_retries=0) as made:
        yield made
