"""What /metrics says of the language runtime after real questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from openai import AsyncOpenAI
from prometheus_client.parser import text_string_to_metric_families

from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from runtime.llm.engine import Engine
from tests.cpu.llm.processors.conftest import SAVES, TOOLS
from tests.cpu.openai.test_media import ask, data_uri, image_url, png
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, small_registry


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[TestServer]:
    """With an engine of its own, whose figures begin at nothing."""
    SAVES["llava"](tmp_path / "llava", TOOLS)

    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        engine = Engine(
            lambda: {"llava": tmp_path / "llava"},
            threads=1,
            num_pages=64,
            on_forward=metrics.llm_forward,
            on_time=metrics.llm_times.observe,
        )
        return Studio(small_registry(Gate()), engine, IdleDiffusion())  # type: ignore[arg-type]

    async with TestServer(build_app(Config(directories=Directories.below(tmp_path)), load)) as opened:
        yield opened


async def figures(server: TestServer) -> Callable[..., float]:
    async with aiohttp.ClientSession() as session, session.get(server.make_url("/metrics")) as answer:
        text = await answer.text()
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]

    def value(name: str, **labels: str) -> float:
        (found,) = [each.value for each in samples if each.name == name and each.labels == labels]
        return found

    return value


async def test_metrics_tell_of_reuse_waits_and_pages(client: AsyncOpenAI, server: TestServer) -> None:
    part: Any = image_url(data_uri(png(7)))
    answers = [await ask(client, part) for _ in range(2)]
    generated = sum(answer.usage.completion_tokens for answer in answers)
    prompt = sum(answer.usage.prompt_tokens for answer in answers)
    cached = sum(answer.usage.prompt_tokens_details.cached_tokens for answer in answers)
    value = await figures(server)
    assert value("prompt_tokens_total", model_name="llava") == prompt
    assert value("generation_tokens_total", model_name="llava") == generated
    assert value("cached_tokens_total", model_name="llava") == cached > 0
    assert value("cache_hit_rate", model_name="llava") == pytest.approx(cached / prompt)
    assert value("media_encoded_total", model_name="llava") == 1
    assert value("num_running_reqs", model_name="llava") == 0
    assert value("num_queue_reqs", model_name="llava") == 0
    assert value("token_usage", model_name="llava") == 0
    for name in ("prefill_time", "time_to_first_token_seconds", "e2e_request_latency_seconds"):
        assert value(f"{name}_count") == 2
        assert value(f"{name}_sum") > 0
    assert value("queue_time_seconds_count") == 2
    assert value("inter_token_latency_seconds_count") == generated - 2
    assert value("prefill_time_sum") < value("time_to_first_token_seconds_sum")
    assert value("time_to_first_token_seconds_sum") <= value("e2e_request_latency_seconds_sum")
