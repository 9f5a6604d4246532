"""What the language nodes ask of their runtime, and what they make of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from app.events import Event, NodeText
from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.language import chat, generate, load_adapter, load_language_model
from runtime.llm.api import ChatRequest, CompleteRequest, Message, SamplingParams

MODEL = load_language_model(model="tiny")


async def test_a_prompt_is_asked_by_the_models_template(context: JobNodeContext, language: Any) -> None:
    answer = await generate(
        context, model=MODEL, prompt="hello", system="Be brief.", max_tokens=5, temperature=0.0, top_p=0.9,
        top_k=3, seed=2**64 - 1, stop="END\n\\n\n",
    )  # fmt: skip
    (asked,) = language.requests
    params = SamplingParams(
        max_tokens=5, temperature=0.0, top_p=0.9, top_k=3, seed=2**64 - 1, stop=("END", "\n")
    )
    messages = (Message("system", "Be brief."), Message("user", "hello"))
    assert asked == ChatRequest(asked.id, "tiny", messages, params)
    assert answer == "sea turtle"


async def test_a_prompt_is_continued_as_it_stands(context: JobNodeContext, language: Any) -> None:
    await generate(context, model=MODEL, prompt="Picture:", mode="continue")
    (asked,) = language.requests
    assert isinstance(asked, CompleteRequest)
    assert (asked.prompt, asked.params.stop) == ("Picture:", ())


async def test_a_continued_prompt_takes_no_system_text(context: JobNodeContext) -> None:
    with pytest.raises(NodeInputError, match="no system text"):
        await generate(context, model=MODEL, prompt="x", system="y", mode="continue")


async def test_an_adapter_travels_with_the_models_name(context: JobNodeContext, language: Any) -> None:
    llm, vlm = load_adapter(model=MODEL, adapter="house/loud")
    await generate(context, model=llm, prompt="x")
    assert language.requests[0].model == vlm == "tiny:house/loud"


async def test_the_text_grows_on_the_node(context: JobNodeContext, published: list[Event]) -> None:
    await generate(context, model=MODEL, prompt="x")
    texts = [event.text for event in published if isinstance(event, NodeText)]
    assert texts == [" sea", " sea turtle", " sea turtle\n"]


async def test_a_chat_goes_on_from_what_was_said(context: JobNodeContext, language: Any) -> None:
    reply, first = await chat(context, model=MODEL, message="one", system="Be brief.")
    assert reply == "sea turtle"
    _, second = await chat(context, model=MODEL, message="two", chat=first)
    _, third = await chat(context, model=MODEL, message="three", system="Be long.", chat=second)
    assert [message.role for message in third] == ["system"] + ["user", "assistant"] * 3
    assert third[0].content == "Be long."
    assert [m.content for m in language.requests[1].messages] == ["Be brief.", "one", "sea turtle", "two"]
    assert len(first) == 3, "a turn leaves the chat before it alone"
