"""Fields that SGLang and vLLM have beside OpenAI's own, through the `openai` client."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError

from tests.cpu.llm.thinker import thinker_token
from tests.cpu.openai.test_media import data_uri, image_url, png

ASKED: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 40,
    "temperature": 0,
}
FLAG = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
FLAG |= {"additionalProperties": False}
THINKING: dict[str, Any] = {
    **ASKED,
    "model": "thinker",
    "temperature": 1,
    "seed": 3,
    "logit_bias": {str(thinker_token("</think>")): 6},
}
OPENED = {"chat_template_kwargs": {"opens": True}}


async def ask(client: AsyncOpenAI, asked: dict[str, Any] = ASKED, **extra: Any) -> Any:
    return (await client.chat.completions.create(**asked, extra_body=extra)).choices[0]


@pytest.mark.parametrize(
    ("field", "value", "fits"),
    [
        ("regex", "[a-c]{4}", lambda text: len(text) == 4),
        ("guided_regex", "[a-c]{4}", lambda text: len(text) == 4),
        ("guided_choice", ["red", "green"], lambda text: text in ("red", "green")),
        ("ebnf", 'root ::= "go " ("left" | "right")', lambda text: text in ("go left", "go right")),
        ("guided_grammar", 'start: "go " ("left" | "right")', lambda text: text in ("go left", "go right")),
        ("json_schema", json.dumps(FLAG), lambda text: "ok" in json.loads(text)),
        ("guided_json", FLAG, lambda text: "ok" in json.loads(text)),
    ],
)
async def test_a_form_may_be_asked_for_by_a_field_of_its_own(
    client: AsyncOpenAI, field: str, value: Any, fits: Any
) -> None:
    answer = await ask(client, **{field: value})
    assert fits(answer.message.content), answer.message.content
    completion = await client.completions.create(
        model="tiny", prompt="x", max_tokens=40, extra_body={field: value}
    )
    assert fits(completion.choices[0].text)


async def test_two_forms_at_once_are_refused_by_name(client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError, match="regex and guided_choice exclude each other"):
        await ask(client, regex="a", guided_choice=["b"])
    with pytest.raises(BadRequestError, match="cannot be read"):
        await ask(client, ebnf="root ::= (")


async def test_tags_are_filled_by_their_schemas(client: AsyncOpenAI) -> None:
    form: Any = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": FLAG, "end": "</f>"}],
        "triggers": ["<"],
    }
    answer = await ask(
        client,
        {**ASKED, "max_tokens": 60, "logit_bias": {str(thinker_token("<")): 100}},
        response_format=form,
    )
    inner = answer.message.content.partition("<f>")[2].partition("</f>")[0]
    assert "ok" in json.loads(inner), answer.message.content
    with pytest.raises(BadRequestError, match="begins with none of the triggers"):
        await ask(client, response_format={**form, "triggers": ["["]})
    with pytest.raises(BadRequestError, match="needs structures and triggers"):
        await ask(client, response_format={"type": "structural_tag"})


@pytest.mark.parametrize("keyword", ["not", "uniqueItems", "contains", "if", "dependentSchemas"])
async def test_a_keyword_that_cannot_be_enforced_is_named(client: AsyncOpenAI, keyword: str) -> None:
    values: dict[str, Any] = {"uniqueItems": True, "dependentSchemas": {"a": {"type": "object"}}}
    schema = {"type": "array" if keyword in ("uniqueItems", "contains") else "object"}
    schema[keyword] = values.get(keyword, {"type": "string"})
    with pytest.raises(BadRequestError, match=f"keywords that cannot be enforced: {keyword}"):
        await ask(client, guided_json=schema)


# -- extended output -----------------------------------------------------------------------------------------


async def test_an_answer_by_a_schema_is_handed_over_as_a_value(client: AsyncOpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "flag", "schema": FLAG}}
    answer = await ask(client, {**ASKED, "response_format": form})
    structured = answer.message.extended_output["structured"]
    assert structured == json.loads(answer.message.content)
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(**ASKED, response_format=form, stream=True)
    ]
    with_it = [c for c in chunks if getattr(c.choices[0].delta, "extended_output", None)]
    assert with_it == chunks[-1:]
    assert with_it[0].choices[0].delta.extended_output == {"structured": structured}  # type: ignore[attr-defined]


async def test_nothing_is_extended_without_a_schema_or_where_the_value_is_cut_off(
    client: AsyncOpenAI,
) -> None:
    assert not hasattr((await ask(client)).message, "extended_output")
    cut = await ask(client, {**ASKED, "max_tokens": 3}, guided_json=FLAG)
    assert not hasattr(cut.message, "extended_output")


# -- templates and thoughts ----------------------------------------------------------------------------------


async def test_the_last_message_is_continued_and_not_repeated(client: AsyncOpenAI) -> None:
    begun = [*ASKED["messages"], {"role": "assistant", "content": "Dear"}]
    answer = await ask(
        client,
        {**ASKED, "messages": begun},
        continue_final_message=True,
        add_generation_prompt=False,
        return_token_ids=True,
    )
    same = await client.completions.create(
        model="tiny", prompt="<user>hello", max_tokens=1, extra_body={"return_token_ids": True}
    )
    assert same.choices[0].prompt_token_ids[:3] == [29, 86, 84]  # type: ignore[attr-defined]
    tokens: Any = await client.post(
        "/tokenize", cast_to=object, body={"model": "tiny", "prompt": "<assistant>Dear"}
    )
    whole: Any = await client.chat.completions.create(
        **{**ASKED, "messages": begun}, extra_body={"continue_final_message": True, "return_token_ids": True}
    )
    assert whole.prompt_token_ids[-tokens["count"] :] == tokens["tokens"]
    assert whole.choices[0].token_ids == answer.token_ids
    assert not answer.message.content.startswith("Dear")
    with pytest.raises(BadRequestError, match="exclude each other"):
        await ask(client, continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(BadRequestError, match="last message of the assistant"):
        await ask(client, continue_final_message=True)


async def test_thoughts_are_a_field_of_their_own_in_whole_answers_and_streams(client: AsyncOpenAI) -> None:
    answer: Any = await client.chat.completions.create(**THINKING, extra_body=OPENED)
    message = answer.choices[0].message
    assert message.reasoning_content
    assert "think>" not in message.reasoning_content
    assert 0 < answer.usage.completion_tokens_details.reasoning_tokens < answer.usage.completion_tokens
    reasoning = content = ""
    async for chunk in await client.chat.completions.create(**THINKING, extra_body=OPENED, stream=True):
        delta: Any = chunk.choices[0].delta
        reasoning += getattr(delta, "reasoning_content", None) or ""
        content += delta.content or ""
    assert (reasoning, content) == (message.reasoning_content, message.content)


async def test_thoughts_stay_where_they_are_when_that_is_asked(client: AsyncOpenAI) -> None:
    parted = (await ask(client, THINKING, **OPENED)).message
    whole = (await ask(client, THINKING, **OPENED, separate_reasoning=False)).message
    assert not hasattr(whole, "reasoning_content")
    assert whole.content.partition("</think>")[2].strip() == parted.content.strip()


async def test_a_form_holds_for_what_comes_after_the_thoughts(client: AsyncOpenAI) -> None:
    message = (await ask(client, THINKING, **OPENED, guided_json=FLAG)).message
    assert message.reasoning_content
    assert message.extended_output["structured"] == json.loads(message.content)


@pytest.mark.parametrize("way", [{"enable_thinking": False}, {"reasoning_effort": "none"}])
async def test_a_model_can_be_told_not_to_think(client: AsyncOpenAI, way: dict[str, Any]) -> None:
    plain: Any = await client.chat.completions.create(**THINKING)
    quiet: Any = await client.chat.completions.create(**THINKING, extra_body=way)
    assert quiet.usage.prompt_tokens > plain.usage.prompt_tokens, "the template closes the thoughts"


async def test_an_argument_that_is_the_servers_own_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError, match="tokenize cannot be an argument"):
        await ask(client, chat_template_kwargs={"tokenize": False})


# -- tokens, stops and prompts -------------------------------------------------------------------------------


async def test_a_stop_string_may_stay_and_is_named(client: AsyncOpenAI) -> None:
    whole = (await ask(client)).message.content
    stop = whole[5]
    cut = await ask(client, {**ASKED, "stop": stop})
    assert cut.message.content + stop == whole[: whole.index(stop) + 1]
    assert cut.matched_stop == stop
    for field in ("include_stop_str_in_output", "no_stop_trim"):
        kept = await ask(client, {**ASKED, "stop": stop}, **{field: True})
        assert kept.message.content == cut.message.content + stop


async def test_an_end_token_that_was_named_is_told(client: AsyncOpenAI) -> None:
    first: Any = await ask(client, return_token_ids=True)
    token = first.token_ids[2]
    stopped = await ask(client, stop_token_ids=[token])
    assert (stopped.finish_reason, stopped.matched_stop) == ("stop", token)


async def test_streams_tell_token_ids_too(client: AsyncOpenAI) -> None:
    whole: Any = await ask(client, return_token_ids=True)
    ids: list[int] = []
    async for chunk in await client.chat.completions.create(
        **ASKED, stream=True, extra_body={"return_token_ids": True}
    ):
        ids += getattr(chunk.choices[0], "token_ids", None) or []
    assert ids == whole.token_ids


async def test_a_completion_echoes_its_prompt_with_the_scores_of_its_tokens(client: AsyncOpenAI) -> None:
    asked: Any = {"model": "tiny", "prompt": "häuser", "temperature": 0, "echo": True}
    answer = (await client.completions.create(**asked, max_tokens=4, logprobs=2)).choices[0]
    assert answer.text.startswith("häuser")
    scores = answer.logprobs
    assert scores is not None
    assert scores.tokens
    assert scores.token_logprobs
    assert scores.tokens[0] == "h"
    assert scores.token_logprobs[0] is None
    assert all(value <= 0 for value in scores.token_logprobs[1:])
    assert len(scores.tokens) == len(scores.text_offset or []) > 7
    alone = (await client.completions.create(**asked, max_tokens=0, logprobs=2)).choices[0]
    assert alone.text == "häuser"
    assert alone.logprobs is not None
    assert alone.logprobs.token_logprobs == scores.token_logprobs[:7]
    streamed = ""
    async for chunk in await client.completions.create(**asked, max_tokens=4, stream=True):
        streamed += chunk.choices[0].text
    assert streamed == answer.text
    with pytest.raises(BadRequestError, match="cannot be streamed"):
        await client.completions.create(**asked, logprobs=1, stream=True)


async def test_prompt_logprobs_are_by_token(client: AsyncOpenAI) -> None:
    answer: Any = await client.completions.create(
        model="tiny", prompt=[40, 41, 42], max_tokens=1, extra_body={"prompt_logprobs": 1}
    )
    first, second, third = answer.choices[0].prompt_logprobs
    assert first is None
    assert second["41"]["logprob"] <= 0
    assert third["42"]["decoded_token"]


async def test_the_literal_body_of_the_article_is_answered(client: AsyncOpenAI) -> None:
    image = "data:image/png;base64," + base64.b64encode(png()).decode()
    body = f"""{{
      "model": "llava",
      "messages": [
        {{"role": "user", "content": [
          {{"type": "text", "text": "请用不超过30个字描述这张图片。"}},
          {{"type": "image_url", "image_url": {{"url": "{image}"}}}}
        ]}}
      ],
      "temperature": 0.2,
      "max_tokens": 16
    }}"""
    response = await client._client.post(
        f"{client.base_url}chat/completions",
        content=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 200, response.text
    answer = response.json()
    assert isinstance(answer["choices"][0]["message"]["content"], str)
    assert answer["usage"]["completion_tokens"] >= 1


async def test_an_answer_about_an_image_is_continued_too(client: AsyncOpenAI) -> None:
    question = {
        "role": "user",
        "content": [{"type": "text", "text": "What is this?"}, image_url(data_uri(png(3)))],
    }
    begun = {"role": "assistant", "content": "It is"}
    asked = {**ASKED, "model": "llava", "max_tokens": 4}
    plain: Any = await client.chat.completions.create(
        **{**asked, "messages": [question]}, extra_body={"return_token_ids": True}
    )
    answer: Any = await client.chat.completions.create(
        **{**asked, "messages": [question, begun]},
        extra_body={"return_token_ids": True, "continue_final_message": True},
    )
    opened, continued = plain.prompt_token_ids, answer.prompt_token_ids
    assert len(opened) < len(continued)
    assert len(continued) - len(opened) <= len("It is") + 1, "nothing closes what was begun"
