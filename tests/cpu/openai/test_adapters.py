"""LoRA adapters over HTTP: as a part of the model's name, and by SGLang's field."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from runtime.llm.engine import Engine
from tests.cpu.llm.conftest import save_random, tiny_llama
from tests.cpu.llm.peft_folders import save_adapter

SETTINGS: dict[str, Any] = {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj", "down_proj"]}
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, "temperature": 0}

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("adapters")
    tiny = save_random(tiny_llama(), root / "tiny")
    loud = save_adapter(tiny, root / "loud", 1, **SETTINGS)
    known = {"loud": loud, "house/quiet": save_adapter(tiny, root / "quiet", 2, **SETTINGS)}
    made = Engine(
        lambda: {"tiny": tiny}, adapters=lambda: known, threads=1, num_pages=128, dtype=torch.float32
    )
    yield made
    made.close()


async def text_of(client: AsyncOpenAI, model: str, **more: Any) -> str:
    answer = await client.chat.completions.create(
        model=model, **ASKED, extra_body={"ignore_eos": True, **more}
    )
    return str(answer.choices[0].message.content)


async def test_requests_with_several_adapters_and_none_are_answered_together(client: AsyncOpenAI) -> None:
    models = ["tiny", "tiny:loud", "tiny:house/quiet"]
    together = await asyncio.gather(*(text_of(client, model) for model in models * 3))
    assert together[:3] == together[3:6] == together[6:]
    assert len(set(together)) == 3
    assert await text_of(client, "tiny", lora_path="loud") == together[1]
    streamed = await client.chat.completions.create(
        model="tiny:loud", **ASKED, stream=True, extra_body={"ignore_eos": True}
    )
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in streamed]) == together[1]


async def test_completions_and_embeddings_take_adapters(client: AsyncOpenAI) -> None:
    asked: dict[str, Any] = {"prompt": "once", "temperature": 0, "max_tokens": 8}
    texts = [
        (await client.completions.create(model=model, **asked, extra_body=extra)).choices[0].text
        for model, extra in [("tiny", {}), ("tiny:loud", {}), ("tiny", {"lora_path": "loud"})]
    ]
    assert texts[0] != texts[1] == texts[2]
    vectors = [
        (await client.embeddings.create(model=model, input="once", encoding_format="float")).data[0].embedding
        for model in ("tiny", "tiny:loud")
    ]
    assert vectors[0] != vectors[1]


async def test_adapters_are_listed_with_the_model_that_they_were_trained_on(client: AsyncOpenAI) -> None:
    names = [each.id async for each in client.models.list()]
    assert names[:3] == ["tiny", "tiny:loud", "tiny:house/quiet"]
    assert (await client.models.retrieve("tiny:house/quiet")).id == "tiny:house/quiet"


async def test_what_is_not_there_is_said(client: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError, match="no adapter called other; there are: house/quiet, loud"):
        await text_of(client, "tiny:other")
    with pytest.raises(BadRequestError, match="one adapter; named are loud and house/quiet"):
        await text_of(client, "tiny:loud", lora_path="house/quiet")
