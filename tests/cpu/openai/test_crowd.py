"""Many callers at once: each hears what it would hear alone, and those who leave leave nothing behind."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from openai import AsyncOpenAI

from runtime.llm.engine import Engine

COLOURS = {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1, "maxItems": 4}


def question(number: int) -> dict[str, Any]:
    choose = random.Random(number)
    asked: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "one of many " * choose.randint(1, 6)}],
        "max_tokens": choose.randint(2, 30),
        "seed": number,
        "temperature": choose.choice([0.0, 0.8, 1.5]),
    }
    asked |= choose.choice(
        [
            {},
            {"frequency_penalty": 1.0, "presence_penalty": 0.5},
            {"logit_bias": {"40": 5.0}},
            {"top_p": 0.8, "extra_body": {"top_k": 20}},
            {"max_tokens": 60, "extra_body": {"structured_outputs": {"json": COLOURS}}},
            {"extra_body": {"structured_outputs": {"regex": "[a-f]{4,9}"}}},
        ]
    )
    return asked


async def whole(client: AsyncOpenAI, number: int) -> str:
    answer = await client.chat.completions.create(**question(number))
    return answer.choices[0].message.content or ""


async def streamed(client: AsyncOpenAI, number: int) -> str:
    stream = await client.chat.completions.create(**question(number), stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def left_early(client: AsyncOpenAI, number: int) -> None:
    stream = await client.chat.completions.create(
        **{**question(number), "max_tokens": 300, "extra_body": {"ignore_eos": True}}, stream=True
    )
    async for _ in stream:
        break
    await stream.close()


async def test_everybody_in_a_crowd_hears_what_each_would_hear_alone(
    client: AsyncOpenAI, engine: Engine
) -> None:
    await whole(client, 0)
    before = engine.stats()["tiny"]
    together = asyncio.gather(
        *(whole(client, number) for number in range(12)),
        *(streamed(client, number) for number in range(12, 24)),
    )
    await asyncio.gather(*(left_early(client, number) for number in range(24, 30)))
    heard = await together
    after = engine.stats()["tiny"]
    alone = [await whole(client, number) for number in range(24)]
    assert heard == alone
    for _ in range(100):
        stats = engine.stats()["tiny"]
        if stats.running == stats.waiting == 0:
            break
        await asyncio.sleep(0.05)
    assert (stats.running, stats.waiting, stats.pages_used) == (0, 0, 0)
    assert (after.rows - before.rows) / (after.forwards - before.forwards) > 2, "they share forwards"
