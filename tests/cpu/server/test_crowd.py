"""Many prompts of many clients at once: nobody hears of others, and results are those of a serial run."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from app.config import Config
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, IdleRuntime, small_registry
from tests.cpu.server.talk import Client, Listener, graph, post

CLIENTS, PROMPTS_EACH = 16, 4
ONCE_IN_ORDER = ["execution_start", "execution_cached", "execution_success", "executing"]


def prompt(client: int, number: int) -> dict[str, Any]:
    """Its first node is shared with prompts of other clients, the second with none."""
    text = f"{client % 4}-{number}"
    return graph(
        ("Source", {"text": text}),
        ("Slow", {"label": text, "steps": 3, "pause_s": 0.001}),
        ("Show", {"text": ["1", 0]}),
        ("Show", {"text": ["2", 0]}),
    )


@pytest.fixture
async def serial(config: Config, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A second server, which runs one prompt at a time."""
    base = tmp_path_factory.mktemp("serial")
    alone = replace(config, max_running_jobs=1, directories=type(config.directories).below(base))

    def load(config: Config, files: Files, metrics: Metrics) -> Studio:
        return Studio(small_registry(Gate()), IdleRuntime(), IdleDiffusion())  # type: ignore[arg-type]

    async with TestClient(TestServer(build_app(alone, load))) as opened:
        yield opened


async def one_client(client: Client, name: str, number: int) -> dict[str, list[tuple[str, Any]]]:
    """Posts its prompts and listens until all have ended: the messages, by prompt."""
    listener = Listener(await client.ws_connect("/ws", params={"clientId": name}))
    await listener.message()
    answers = await asyncio.gather(
        *(post(client, prompt(number, i), client_id=name) for i in range(PROMPTS_EACH))
    )
    heard: dict[str, list[tuple[str, Any]]] = {answer["prompt_id"]: [] for _, answer in answers}
    open_ids = set(heard)
    while open_ids:
        kind, data = await listener.message()
        if kind in ("status", "binary"):
            continue
        heard[data["prompt_id"]].append((kind, data))
        if kind == "executing" and data["node"] is None:
            open_ids.discard(data["prompt_id"])
    await listener.socket.close()
    return heard


async def outputs(client: Client, prompt_id: str) -> Any:
    item = (await (await client.get(f"/history/{prompt_id}")).json())[prompt_id]
    assert item["status"]["status_str"] == "success"
    return item["outputs"]


def check_order(messages: list[tuple[str, Any]]) -> None:
    kinds = [kind for kind, _ in messages]
    assert [kind for kind in kinds if kind in ONCE_IN_ORDER[:3]] == ONCE_IN_ORDER[:3]
    assert (kinds[0], kinds[1], kinds[-2]) == ("execution_start", "execution_cached", "execution_success")
    assert messages[-1][1]["node"] is None
    started = [data["node"] for kind, data in messages[:-1] if kind == "executing"]
    assert sorted(started) == sorted(set(started)), "each node starts once"
    for position, (kind, data) in enumerate(messages):
        if kind == "executed":
            assert data["node"] in messages[1][1]["nodes"] or ("executing", data["node"]) in [
                (earlier, about.get("node")) for earlier, about in messages[:position]
            ]
    values = [data["value"] for kind, data in messages if kind == "progress"]
    assert values == sorted(values)


async def test_sixty_four_prompts_of_sixteen_clients_end_as_in_a_serial_run(
    client: Client, serial: Client
) -> None:
    heard = await asyncio.gather(*(one_client(client, f"c{n}", n) for n in range(CLIENTS)))
    ids = [prompt_id for by_prompt in heard for prompt_id in by_prompt]
    assert len(set(ids)) == CLIENTS * PROMPTS_EACH
    for number, by_prompt in enumerate(heard):
        for i, (prompt_id, messages) in enumerate(by_prompt.items()):
            check_order(messages)
            assert {data["prompt_id"] for _, data in messages} == {prompt_id}
            _, answer = await post(serial, prompt(number, i))
            while not await (await serial.get(f"/history/{answer['prompt_id']}")).json():
                await asyncio.sleep(0.005)
            assert await outputs(client, prompt_id) == await outputs(serial, answer["prompt_id"])


async def test_one_at_a_time_is_strict_order(serial: Client) -> None:
    listener = Listener(await serial.ws_connect("/ws", params={"clientId": "me"}))
    await listener.message()
    answers = await asyncio.gather(*(post(serial, prompt(n, n), client_id="me") for n in range(12)))
    by_number = [answer["prompt_id"] for _, answer in sorted(answers, key=lambda one: one[1]["number"])]
    seen: list[tuple[str, str]] = []
    while len(seen) < 2 * len(by_number):
        kind, data = await listener.message()
        if kind == "execution_start" or (kind == "executing" and data["node"] is None):
            seen.append((kind, data["prompt_id"]))
    assert seen == [(kind, id) for id in by_number for kind in ("execution_start", "executing")]
    await listener.socket.close()
