"""The description of the API is true of the routes, and no request that follows it upsets the server."""

import asyncio
import inspect
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, Phase

from app import server
from app.api.describe import taken_by
from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, IdleRuntime, small_registry
from tests.cpu.server.talk import Client


def load(config: Config, files: Files, metrics: Metrics) -> Studio:
    return Studio(small_registry(Gate()), IdleRuntime(), IdleDiffusion())  # type: ignore[arg-type]


async def test_every_route_is_described_with_the_model_that_reads_its_body(client: Client) -> None:
    document = await (await client.get("/openapi.json")).json()
    assert document == await (await client.get("/api/openapi.json")).json()
    assert document["paths"]["/prompt"]["post"]["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/PromptBody"
    }
    assert "prompt_id" in document["components"]["schemas"]["PromptBody"]["properties"]
    for resource in (*server._RESOURCES, *server._OPENAI):
        for route in resource.routes:
            path = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.path)
            assert route.method.lower() in document["paths"][path]
            read = re.search(r"json_body\(request, (\w+)", inspect.getsource(route.handler))
            if read is not None:
                body = taken_by(route.handler).body
                assert isinstance(body, type), route.path
                assert body.__name__ == read[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server in a loop of its own, because the checks block."""
    base: Path = tmp_path_factory.mktemp("described")
    config = replace(Config(Directories.below(base)), max_upload_mb=1, assets=True)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server under test")
    thread.start()

    async def start() -> tuple[TestServer, dict[str, Any]]:
        running = TestServer(build_app(config, load))
        await running.start_server()
        return running, running.app[server.openapi.DOCUMENT]

    running, document = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    yield str(running.make_url("")), document
    asyncio.run_coroutine_threadsafe(running.close(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_no_request_that_the_description_allows_upsets_the_server(
    address: tuple[str, dict[str, Any]],
) -> None:
    url, document = address
    schema = schemathesis.openapi.from_dict(document)
    called = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.startswith("/v1/"):
            # these ask a language runtime, which this server has not
            continue
        call = hypothesis.given(case=operation.as_strategy())(_asker(url))
        settings = hypothesis.settings(
            max_examples=10,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        settings(call)()
        called += 1
    assert called > 60


def _asker(url: str) -> Any:
    def ask(case: Any) -> None:
        if case.query and case.query.get("wait"):
            case.query["timeout"] = 0.1
        answer = case.call(base_url=url, timeout=10)
        assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text}"
        if answer.status_code >= 400 and case.method != "HEAD":
            assert "error" in answer.json(), f"{case.method} {case.path}: {answer.text}"

    return ask
