"""A Florence-2 answers chats: text, a stream, and boxes beside the text."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestServer
from openai import AsyncOpenAI, BadRequestError
from PIL import Image

from app.config import Config
from app.files import Files
from app.metrics import Metrics
from app.startup import Studio
from runtime.llm.engine import Engine
from tests.cpu.llm.test_florence2 import save
from tests.cpu.openai.conftest import LentEngine
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, small_registry


@pytest.fixture(scope="module")
def florence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = save(tmp_path_factory.mktemp("florence") / "florence2")
    engine = Engine(lambda: {"florence2": folder}, threads=1)
    yield engine
    engine.close()


@pytest.fixture
def studio_of(florence: Engine) -> Callable[[Config, Files, Metrics], Studio]:
    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        return Studio(small_registry(Gate()), LentEngine(florence), IdleDiffusion())  # type: ignore[arg-type]

    return load


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=str(server.make_url("/v1")), api_key="none", max_retries=0) as made:
        yield made


def messages(task: str) -> Any:
    numbers = np.random.default_rng(1).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    target = io.BytesIO()
    Image.fromarray(numbers).save(target, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": task}]
    return [{"role": "user", "content": content}]


async def test_a_task_is_answered_with_boxes_beside_the_text(client: AsyncOpenAI) -> None:
    asked: Any = {"model": "florence2", "messages": messages("<OD>"), "max_tokens": 12, "temperature": 0}
    answer = await client.chat.completions.create(**asked)
    found = answer.choices[0].message.model_extra["extended_output"]["<OD>"]
    assert set(found) == {"bboxes", "labels"}
    assert answer.choices[0].message.content

    stream = await client.chat.completions.create(**asked, stream=True)
    deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
    assert "".join(each.content or "" for each in deltas) == answer.choices[0].message.content
    extended = [
        each.model_extra["extended_output"] for each in deltas if "extended_output" in each.model_extra
    ]
    assert extended == [{"<OD>": found}]


async def test_what_it_cannot_do_is_a_bad_request(client: AsyncOpenAI) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    with pytest.raises(BadRequestError, match="tools is not served for encoder-decoder models"):
        await client.chat.completions.create(model="florence2", messages=messages("<OD>"), tools=[tool])
