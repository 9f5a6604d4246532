"""Whatever arrives, the answer is the client's fault or a success, and the server stays up."""

import json
import random
from typing import Any

import pytest

from tests.cpu.server.talk import SHOWN, Client, graph, post

BODIES = [
    "/prompt",
    "/queue",
    "/interrupt",
    "/free",
    "/history",
    "/jobs/cancel",
    "/users",
    "/settings",
    "/settings/x",
]
QUERIES = ["/view", "/history", "/jobs", "/userdata", "/v2/userdata", "/view_metadata/loras"]
WORDS = [
    "prompt",
    "clear",
    "delete",
    "prompt_id",
    "number",
    "front",
    "extra_data",
    "client_id",
    "job_ids",
    "inputs",
]
NAMES = [
    "filename",
    "type",
    "subfolder",
    "preview",
    "channel",
    "max_items",
    "offset",
    "limit",
    "status",
    "dir",
    "path",
]
TEXTS = [
    "",
    "a",
    "../x",
    "\0",
    "é" * 300,
    "-1",
    "1e9",
    "null",
    "__proto__",
    "Show",
    "default",
    "output",
    "a.png",
]


def any_json(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(8 if depth < 4 else 5)
    match kind:
        case 0:
            return chance.choice([None, True, False])
        case 1:
            return chance.choice([0, -1, 7, 2**70, -0.5, 1e300])
        case 2 | 3 | 4:
            return chance.choice([*TEXTS, "\ud800"])
        case 5:
            return [any_json(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            keys = chance.sample(WORDS, chance.randrange(5))
            return {key: any_json(chance, depth + 1) for key in keys}


def spoiled(chance: random.Random, value: Any) -> Any:
    """The value with one thing in it replaced by anything."""
    if chance.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return any_json(chance, depth=2)
    if isinstance(value, list):
        place = chance.randrange(len(value))
        return [spoiled(chance, item) if i == place else item for i, item in enumerate(value)]
    place = chance.choice(sorted(value))
    return {key: spoiled(chance, item) if key == place else item for key, item in value.items()}


@pytest.mark.parametrize("seed", range(4))
async def test_any_json_to_any_route_is_answered(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        body = any_json(chance)
        for route in BODIES:
            answer = await client.post(route, data=json.dumps(body))
            assert answer.status < 500, (route, body, await answer.text())
    assert (await post(client, SHOWN))[0] == 200


@pytest.mark.parametrize("seed", range(4))
async def test_a_prompt_with_one_thing_wrong_is_answered_and_ends(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    sound = graph(
        ("Source", {"text": "hello"}),
        ("Slow", {"label": ["1", 0], "steps": 2, "pause_s": 0.0}),
        ("Show", {"text": ["2", 0]}),
        ("Picture", {"width": 8, "prefix": "a/b"}),
    )
    body = {"prompt": sound, "client_id": "c", "extra_data": {"extra_pnginfo": {"workflow": {"id": "w"}}}}
    for _ in range(150):
        wrong = spoiled(chance, body)
        answer = await client.post("/prompt", data=json.dumps(wrong))
        assert answer.status in (200, 400), (wrong, await answer.text())
        assert (await answer.json()).keys() >= {"node_errors"}
    await client.post("/interrupt")
    assert (await post(client, SHOWN))[0] == 200
    for path in ("/history", "/jobs", "/queue"):
        assert (await client.get(path)).status == 200


@pytest.mark.parametrize("seed", range(4))
async def test_any_query_is_answered(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        query = {name: chance.choice(TEXTS) for name in chance.sample(NAMES, chance.randrange(5))}
        for route in QUERIES:
            answer = await client.get(route, params=query)
            assert answer.status < 500, (route, query, await answer.text())
