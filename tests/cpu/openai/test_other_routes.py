"""/v1/completions, /v1/embeddings, /v1/models and /v1/tokenize as the `openai` client sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from runtime.llm.api import EmbedRequest
from runtime.llm.engine import Engine


async def test_a_prompt_is_continued(client: AsyncOpenAI) -> None:
    asked: Any = {"model": "tiny", "prompt": "once", "temperature": 0, "max_tokens": 8}
    whole = await client.completions.create(**asked)
    assert whole.object == "text_completion"
    text = ""
    async for chunk in await client.completions.create(**asked, stream=True):
        text += chunk.choices[0].text
    assert text == whole.choices[0].text


async def test_each_prompt_has_its_answers(client: AsyncOpenAI) -> None:
    answer = await client.completions.create(model="tiny", prompt=["one", "two"], n=2, max_tokens=3, seed=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 6
    alone = await client.completions.create(model="tiny", prompt=[2 + ord("t") - 33], max_tokens=3, seed=1)
    assert alone.usage is not None
    assert alone.usage.prompt_tokens == 1


async def test_log_probabilities_come_in_the_older_form(client: AsyncOpenAI) -> None:
    answer = await client.completions.create(
        model="tiny", prompt="abc", logprobs=2, max_tokens=5, temperature=0, extra_body={"min_tokens": 5}
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert logprobs.text_offset is not None
    assert len(logprobs.tokens) == 5
    assert logprobs.text_offset[0] == 0
    assert all(len(top) <= 2 for top in logprobs.top_logprobs or [])


@pytest.mark.parametrize("change", [{"suffix": "x"}, {"best_of": 2}, {"prompt": []}, {"prompt": [10**6]}])
async def test_what_a_completion_cannot_do_is_a_bad_request(
    client: AsyncOpenAI, change: dict[str, Any]
) -> None:
    with pytest.raises(BadRequestError):
        await client.completions.create(**{"model": "tiny", "prompt": "x", **change})


async def test_an_embedding_is_the_unit_mean_of_the_last_layer(client: AsyncOpenAI, engine: Engine) -> None:
    texts = ["a sea turtle", "a turtle in the sea", "x"]
    answer = await client.embeddings.create(model="tiny", input=texts)
    floats = await client.embeddings.create(model="tiny", input=texts, encoding_format="float")
    for one, other, text in zip(answer.data, floats.data, texts):
        hidden = engine.submit(EmbedRequest(f"check {text}", "tiny", text)).wait(30).hidden
        mean = hidden.mean(0).numpy()
        np.testing.assert_allclose(one.embedding, mean / np.linalg.norm(mean), atol=1e-5)
        np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-6)
    assert answer.usage.prompt_tokens == sum(len(text) for text in texts)


async def test_models_are_listed_and_shown(client: AsyncOpenAI) -> None:
    names = [model.id async for model in await client.models.list()]
    assert "tiny" in names
    assert (await client.models.retrieve("tiny")).id == "tiny"
    with pytest.raises(NotFoundError, match="ghost"):
        await client.models.retrieve("ghost")


async def test_texts_and_messages_are_cut_into_tokens(client: AsyncOpenAI) -> None:
    text: Any = await client.post("/tokenize", cast_to=object, body={"model": "tiny", "prompt": "häh"})
    assert (text["count"], text["token_strs"][0], text["max_model_len"]) == (4, "h", 1024)
    messages = [{"role": "user", "content": "hi"}]
    chat: Any = await client.post("/tokenize", cast_to=object, body={"model": "tiny", "messages": messages})
    assert chat["token_strs"][-1] == ">"
    assert chat["count"] == len("<user>hi") + 1 + len("<assistant>")
    with pytest.raises(BadRequestError, match="Either prompt or messages"):
        await client.post("/tokenize", cast_to=object, body={"model": "tiny"})
