"""/v1/responses as the `openai` client sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from app.openai.response_store import ResponseStore, Stored
from app.openai.types import ChatMessage
from tests.cpu.llm.thinker import thinker_token
from tests.cpu.openai.test_media import data_uri, png

ASKED: dict[str, Any] = {"model": "tiny", "input": "hello", "max_output_tokens": 12, "temperature": 0}
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "name": "weather", "parameters": CITY, "strict": True}
FORM: Any = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}


async def test_a_response_says_what_the_chat_says(client: AsyncOpenAI) -> None:
    response = await client.responses.create(**ASKED, instructions="Be short")
    chat = await client.chat.completions.create(
        model="tiny",
        messages=[{"role": "system", "content": "Be short"}, {"role": "user", "content": "hello"}],
        max_tokens=12,
        temperature=0,
    )
    assert response.output_text == chat.choices[0].message.content
    assert response.usage is not None
    assert chat.usage is not None
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.usage.output_tokens == chat.usage.completion_tokens
    reason = chat.choices[0].finish_reason
    assert response.status == ("incomplete" if reason == "length" else "completed")


async def test_a_streams_events_come_in_order_and_say_the_same(client: AsyncOpenAI) -> None:
    whole = await client.responses.create(**ASKED)
    events = [event async for event in await client.responses.create(**ASKED, stream=True)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{whole.status}",
    ]
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == whole.output_text
    last: Any = events[-1]
    assert last.response.output_text == whole.output_text
    assert whole.usage is not None
    assert last.response.usage.output_tokens == whole.usage.output_tokens


async def test_the_clients_own_stream_helper_understands_it(client: AsyncOpenAI) -> None:
    async with client.responses.stream(**ASKED) as stream:
        text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
    assert text == (await client.responses.create(**ASKED)).output_text


async def test_a_text_follows_its_schema_and_comes_as_a_value_too(client: AsyncOpenAI) -> None:
    response = await client.responses.create(**{**ASKED, "max_output_tokens": 40}, text=FORM)
    value = json.loads(response.output_text)
    assert value["city"] in ("Rome", "Oslo")
    assert response.output[0].extended_output == {"structured": value}  # type: ignore[union-attr]
    assert response.text is not None
    assert response.text.format is not None
    assert response.text.format.type == "json_schema"


async def test_a_tool_is_called_and_its_result_goes_back(client: AsyncOpenAI) -> None:
    asked = {**ASKED, "max_output_tokens": 120, "tools": [TOOL], "tool_choice": "required"}
    response = await client.responses.create(**asked)
    (call,) = response.output
    assert call.type == "function_call"
    assert json.loads(call.arguments)["city"] in ("Rome", "Oslo")
    events: list[Any] = [event async for event in await client.responses.create(**asked, stream=True)]
    kinds = [event.type for event in events]
    assert "response.output_text.delta" not in kinds
    (done,) = [each for each in events if each.type == "response.function_call_arguments.done"]
    deltas = [each.delta for each in events if each.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == done.arguments == call.arguments
    named: Any = {"type": "function", "name": "weather"}
    assert (await client.responses.create(**{**asked, "tool_choice": named})).output[
        0
    ].type == "function_call"
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    by_hand: Any = [{"role": "user", "content": "hello"}, call.model_dump(exclude_none=True), result]
    stateless = await client.responses.create(**{**ASKED, "input": by_hand}, tools=[TOOL])
    kept = await client.responses.create(
        **{**ASKED, "input": [result]}, previous_response_id=response.id, tools=[TOOL]
    )
    assert kept.usage is not None
    assert stateless.usage is not None
    assert kept.usage.input_tokens == stateless.usage.input_tokens
    assert kept.output_text == stateless.output_text


async def test_a_conversation_goes_on_by_the_id_of_its_last_response(client: AsyncOpenAI) -> None:
    first = await client.responses.create(**{**ASKED, "input": "a long beginning " * 5}, instructions="x")
    second = await client.responses.create(**{**ASKED, "input": "on"}, previous_response_id=first.id)
    chat = await client.chat.completions.create(
        model="tiny",
        messages=[
            {"role": "user", "content": "a long beginning " * 5},
            {"role": "assistant", "content": first.output_text},
            {"role": "user", "content": "on"},
        ],
        max_tokens=12,
        temperature=0,
    )
    assert second.output_text == chat.choices[0].message.content
    third = await client.responses.create(**{**ASKED, "input": "and on"}, previous_response_id=second.id)
    assert third.previous_response_id == second.id
    assert third.usage is not None
    assert third.usage.input_tokens_details.cached_tokens >= 64


async def test_responses_are_kept_until_they_are_deleted(client: AsyncOpenAI) -> None:
    response = await client.responses.create(**ASKED)
    assert (await client.responses.retrieve(response.id)).output_text == response.output_text
    await client.responses.delete(response.id)
    unkept = await client.responses.create(**ASKED, store=False)
    for id in (response.id, unkept.id, "resp_none"):
        with pytest.raises(NotFoundError, match="no response"):
            await client.responses.retrieve(id)
    with pytest.raises(NotFoundError, match="no response"):
        await client.responses.create(**ASKED, previous_response_id=unkept.id, stream=True)


async def test_images_are_seen(client: AsyncOpenAI) -> None:
    def asked(seed: int) -> dict[str, Any]:
        parts = [
            {"type": "input_text", "text": "What is it?"},
            {"type": "input_image", "image_url": data_uri(png(seed)), "detail": "auto"},
        ]
        return {**ASKED, "model": "llava", "input": [{"role": "user", "content": parts}]}

    one, same, other = [await client.responses.create(**asked(seed)) for seed in (1, 1, 2)]
    assert one.output_text == same.output_text != other.output_text


async def test_thoughts_are_an_item_before_the_answer(client: AsyncOpenAI) -> None:
    # the Responses API has no bias, so chance must close the thoughts
    asked: Any = {"model": "thinker", "input": "hello", "max_output_tokens": 200}
    opened = {"chat_template_kwargs": {"opens": True}}
    for seed in range(40):
        events: list[Any] = [
            event
            async for event in await client.responses.create(
                **asked, stream=True, extra_body={**opened, "seed": seed}
            )
        ]
        response = events[-1].response
        if [item.type for item in response.output] == ["reasoning", "message"]:
            break
    assert [item.type for item in response.output] == ["reasoning", "message"]
    told = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    assert response.output[0].content[0].text == told
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert thinker_token("</think>") > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input": [{"role": "judge", "content": "x"}]}, "role"),
        ({"temperature": -1}, "temperature must be 0"),
        ({"background": True}, "background"),
        ({"tool_choice": "required"}, "no tools"),
        ({"tools": [{"type": "web_search"}]}, "tools.0"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}}, "not"),
        ({"extra_body": {"colour": "red"}}, "colour"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_cannot_be_served_is_a_bad_request_that_says_why(
    client: AsyncOpenAI, change: dict[str, Any], says: str, stream: bool
) -> None:
    with pytest.raises(BadRequestError, match=says):
        await client.responses.create(**{**ASKED, **change}, stream=stream)


def test_the_store_is_bounded_and_the_oldest_go() -> None:
    store = ResponseStore()
    large = [ChatMessage(role="user", content="x" * (20 << 20))]
    for number in range(5):
        store.put(Stored({"id": f"r{number}"}, large))
    with pytest.raises(Exception, match="no response r1"):
        store.get("r1")
    assert store.get("r4").response == {"id": "r4"}
    for number in range(600):
        store.put(Stored({"id": f"s{number}"}, []))
    with pytest.raises(Exception, match="no response s0"):
        store.get("s0")
    assert store.get("s599")
