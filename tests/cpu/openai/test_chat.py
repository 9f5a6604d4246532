"""/v1/chat/completions as the `openai` client sees it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, NotFoundError

from runtime.llm.engine import Engine

ASKED: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 12,
}
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Rome", "Oslo"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "The weather", "parameters": WEATHER},
    },
    {"type": "function", "function": {"name": "clock"}},
]


async def test_a_chat_is_answered_with_its_usage(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(**ASKED, temperature=0)
    choice = answer.choices[0]
    assert (answer.object, answer.model, choice.message.role) == ("chat.completion", "tiny", "assistant")
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len("<user>hello") + 1 + len("<assistant>")
    assert 1 <= answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_a_stream_says_what_the_whole_answer_says(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(**ASKED, seed=5)
    stream = await client.chat.completions.create(
        **ASKED, seed=5, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == (
        whole.choices[0].message.content
    )
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == whole.choices[0].finish_reason
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_a_second_turn_finds_the_first_in_the_cache(client: AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "a long beginning " * 6}]
    await client.chat.completions.create(model="tiny", messages=messages, max_tokens=2)
    messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
    answer = await client.chat.completions.create(model="tiny", messages=messages, max_tokens=2)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.prompt_tokens_details.cached_tokens or 0) >= 96


async def test_several_answers_differ_and_a_seed_repeats_them(client: AsyncOpenAI) -> None:
    first = await client.chat.completions.create(**ASKED, n=3, seed=7)
    again = await client.chat.completions.create(**ASKED, n=3, seed=7)
    texts = [choice.message.content for choice in first.choices]
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert texts == [choice.message.content for choice in again.choices]
    single = await client.chat.completions.create(**ASKED, seed=8)
    assert single.choices[0].message.content == texts[1], "company changes nothing"


async def test_streams_of_several_answers_are_told_apart(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(**ASKED, n=3, seed=7)
    texts = ["", "", ""]
    ends = set()
    async for chunk in await client.chat.completions.create(**ASKED, n=3, seed=7, stream=True):
        choice = chunk.choices[0]
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            ends.add(choice.index)
    assert texts == [choice.message.content for choice in whole.choices]
    assert ends == {0, 1, 2}


async def test_log_probabilities_name_the_chosen_and_the_likeliest_tokens(client: AsyncOpenAI) -> None:
    wanted: dict[str, Any] = {**ASKED, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    answer = await client.chat.completions.create(**wanted)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content
    for token in logprobs.content:
        values = [top.logprob for top in token.top_logprobs]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert token.logprob == values[0] <= 0, "greedy takes the likeliest"
    joined = b"".join(bytes(token.bytes or []) for token in logprobs.content)
    # control tokens have a name and no text
    assert joined.decode("utf-8", "replace").replace("<s>", "") == answer.choices[0].message.content
    streamed = []
    async for chunk in await client.chat.completions.create(**wanted, stream=True):
        if chunk.choices[0].logprobs:
            streamed += chunk.choices[0].logprobs.content or []
    assert streamed == logprobs.content


async def test_an_answer_follows_its_json_schema(client: AsyncOpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}
    asked = {**ASKED, "max_tokens": 60, "response_format": form}
    answers = await asyncio.gather(
        *(client.chat.completions.create(**asked, seed=seed, temperature=2.0) for seed in range(8))
    )
    got = [json.loads(answer.choices[0].message.content or "") for answer in answers]
    assert all(set(each) == {"city", "days"} and 1 <= each["days"] <= 9 for each in got)
    assert {each["city"] for each in got} == {"Rome", "Oslo"}
    assert {answer.choices[0].finish_reason for answer in answers} == {"stop"}


@pytest.mark.parametrize(
    ("structure", "fits"),
    [
        ({"regex": "[a-c]{3}-[0-9]{2}"}, lambda text: len(text) == 6 and text[3] == "-"),
        ({"choice": ["red", "green"]}, lambda text: text in ("red", "green")),
        ({"grammar": 'start: "go " ("left" | "right")'}, lambda text: text in ("go left", "go right")),
        ({"json": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}}, json.loads),
    ],
)
async def test_an_answer_follows_its_structure(client: AsyncOpenAI, structure: Any, fits: Any) -> None:
    answer = await client.chat.completions.create(
        **{**ASKED, "max_tokens": 40}, extra_body={"structured_outputs": structure}
    )
    assert fits(answer.choices[0].message.content), answer.choices[0].message.content


async def test_a_required_tool_is_called_with_arguments_of_its_schema(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        **{**ASKED, "max_tokens": 100}, tools=TOOLS[:1], tool_choice="required", seed=1
    )
    choice = answer.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert choice.message.tool_calls
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "weather"
    arguments = json.loads(call.function.arguments)
    assert arguments["city"] in ("Rome", "Oslo")
    result: Any = [
        *ASKED["messages"],
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    said = await client.chat.completions.create(model="tiny", messages=result, tools=TOOLS, max_tokens=4)
    assert said.choices[0].finish_reason in ("stop", "length")


async def test_a_named_tool_is_called_in_a_stream_and_no_marker_shows(client: AsyncOpenAI) -> None:
    named: Any = {"type": "function", "function": {"name": "weather"}}
    calls, text, finish = [], "", None
    async for chunk in await client.chat.completions.create(
        **{**ASKED, "max_tokens": 100}, tools=TOOLS, tool_choice=named, stream=True
    ):
        delta = chunk.choices[0].delta
        calls += delta.tool_calls or []
        text += delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    assert text == ""
    assert finish == "tool_calls"
    assert [call.index for call in calls] == [0]
    assert calls[0].function is not None
    assert calls[0].function.name == "weather"
    assert json.loads(calls[0].function.arguments or "")["days"] >= 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"temperature": -1}, "temperature must be 0"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages.0.role"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"top_logprobs": 3}, "needs logprobs"),
        ({"n": 1000}, "n: "),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"tool_choice": "required"}, "no tools"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}},
            "not",
        ),
        ({"extra_body": {"colour": "red"}}, "colour"),
        ({"extra_body": {"structured_outputs": {"regex": "[a-"}}}, "regular expression"),
        ({"logit_bias": {"999999": 1}}, "from 0 to 257"),
        ({"messages": [{"role": "user", "content": "long " * 400}]}, "tokens"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_cannot_be_served_is_a_bad_request_that_says_why(
    client: AsyncOpenAI, change: dict[str, Any], says: str, stream: bool
) -> None:
    with pytest.raises(BadRequestError, match=says) as caught:
        await client.chat.completions.create(**{**ASKED, **change}, stream=stream)
    assert caught.value.type == "invalid_request_error"


async def test_an_unknown_model_is_not_found(client: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError, match="no language model called ghost") as caught:
        await client.chat.completions.create(**{**ASKED, "model": "ghost"}, stream=True)
    assert caught.value.code == "model_not_found"


async def test_a_body_that_is_no_json_is_an_openai_error(client: AsyncOpenAI) -> None:
    with pytest.raises(APIError) as caught:
        await client.post("/chat/completions", cast_to=object, content=b"{", options={})
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_leaves_stops_the_work(client: AsyncOpenAI, engine: Engine, stream: bool) -> None:
    endless: dict[str, Any] = {**ASKED, "max_tokens": 400, "extra_body": {"ignore_eos": True}}

    async def ask() -> None:
        answer = await client.chat.completions.create(**endless, stream=stream)
        if stream:
            async for _ in answer:
                pass

    task = asyncio.create_task(ask())
    while not engine.stats().get("tiny") or engine.stats()["tiny"].running == 0:
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.wait([task])
    before = engine.stats()["tiny"].generated_tokens
    for _ in range(100):
        if engine.stats()["tiny"].running == 0:
            break
        await asyncio.sleep(0.02)
    assert engine.stats()["tiny"].running == 0
    assert engine.stats()["tiny"].generated_tokens - before < 380
