"""Whatever a body holds, the answer is an answer or a fault of its own, and neighbours notice nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

HELLO = [{"role": "user", "content": "hi"}]


def schema(**keywords: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": keywords}}}


def structure(kind: str, value: Any) -> dict[str, Any]:
    return {"structured_outputs": {kind: value}}


def said(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    function = {"name": name, "parameters": parameters}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "boolean"}
    for _ in range(depth):
        inner = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    return inner


STRANGE: list[dict[str, Any]] = [
    schema(**nested(300)),
    schema(**{"$ref": "#"}),
    schema(type="object", properties={"a": {"$ref": "#"}}, required=["a"]),
    schema(type="string", pattern="(a{1,1000}){1,1000}"),
    schema(enum=[]),
    schema(type="string", maxLength=10**18),
    schema(type="array", minItems=10**9),
    structure("regex", "((a+)+)+$"),
    structure("regex", "[^\\s\\S]"),
    structure("regex", "\x00\ud800"),
    structure("grammar", "start: start"),
    structure("grammar", "start: <[5000000]>"),
    structure("choice", ["\x00", '\n"\\ ^$', "é"]),
    structure("choice", [str(number) for number in range(5000)]),
    said("\ud800 half"),
    said("\x00"),
    said([]),
    said([{"type": "image_url", "image_url": {"url": "http://x"}}]),
    {"messages": [{"role": "assistant", "content": None}]},
    {
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "["}}]}
        ]
    },
    {"seed": 10**40},
    {"top_k": 10**30},
    {"temperature": 1e-300},
    {"temperature": 1e300},
    {"top_p": 1e-300},
    {"repetition_penalty": 1e-300},
    {"repetition_penalty": 1e300},
    {"logit_bias": {"-1": 1}},
    {"stop": ["\ud800"]},
    {"stop": ["a"] * 1000},
    {"max_tokens": -5},
    {"stop_token_ids": [10**30]},
    {"min_tokens": 3, "stop_token_ids": [-1]},
    {"logprobs": True, "top_logprobs": -1},
    {"n": 3, "stream": True, "logprobs": True, "top_logprobs": 20},
    {"model": "../../etc"},
    {"model": "\x00"},
    tool("", type="nonsense"),
    tool('"} x'),
    tool("f", **{"not": {}}),
]


@pytest.fixture
async def browser(server: TestServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.make_url("/")) as session:
        yield session


async def ask(session: aiohttp.ClientSession, body: Any) -> tuple[int, str]:
    async with session.post("/v1/chat/completions", data=json.dumps(body)) as answer:
        return answer.status, await answer.text()


async def test_a_strange_body_is_answered_or_refused_and_its_neighbour_is_served(
    browser: aiohttp.ClientSession,
) -> None:
    plain = {"model": "tiny", "messages": HELLO, "max_tokens": 5, "temperature": 0}
    _, expected = await ask(browser, plain)
    text = json.loads(expected)["choices"][0]["message"]["content"]
    for strange in STRANGE:
        body = {"model": "tiny", "messages": HELLO, "max_tokens": 20, **strange}
        (status, answer), (_, neighbour) = await asyncio.gather(ask(browser, body), ask(browser, plain))
        assert status in (200, 400, 404), (strange, answer)
        assert json.loads(neighbour)["choices"][0]["message"]["content"] == text, strange
        if status != 200:
            message = json.loads(answer)["error"]["message"]
            assert 10 < len(message) < 1000, (strange, message)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"model": NaN}', b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings", "tokenize"])
async def test_a_body_that_is_no_object_is_a_bad_request(
    browser: aiohttp.ClientSession, path: str, body: bytes
) -> None:
    async with browser.post(f"/v1/{path}", data=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["type"] == "invalid_request_error"
