"""Structured answers, choices, parts of JSON and embeddings, with a tiny real language model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.language import embed
from nodes.structured import choose, extract, structured
from runtime.llm.engine import Engine
from runtime.platform.errors import Unsupported
from tests.cpu.llm.conftest import save_random, tiny_llama

HOURS = {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"day": {"enum": ["mon", "sun"]}, "hours": HOURS},
        "required": ["day", "hours"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = save_random(tiny_llama(), tmp_path_factory.mktemp("structured") / "tiny")
    made = Engine(lambda: {"tiny": folder}, threads=1, num_pages=128)
    yield made
    made.close()


@pytest.fixture
def ctx(context_over: Callable[[Any, Any], JobNodeContext], engine: Engine) -> JobNodeContext:
    return context_over(engine, None)


async def test_an_answer_has_the_form_of_its_schema(ctx: JobNodeContext) -> None:
    answer = await structured(
        ctx, model="tiny", prompt="when?", schema=SCHEMA, system="Be brief.", temperature=2.0, seed=3
    )
    value, text, *properties = answer.values
    assert set(value) == {"day", "hours"}
    assert json.loads(text) == value
    assert properties[:2] == [value["day"], value["hours"]]


async def test_an_answer_that_is_too_long_says_so(ctx: JobNodeContext) -> None:
    with pytest.raises(NodeInputError, match="not complete after 4 tokens"):
        await structured(ctx, model="tiny", prompt="when?", schema=SCHEMA, max_tokens=4)


async def test_a_schema_that_cannot_be_enforced_is_named(ctx: JobNodeContext) -> None:
    with pytest.raises(Unsupported, match="uniqueItems"):
        await structured(ctx, model="tiny", prompt="x", schema='{"type": "array", "uniqueItems": true}')


async def test_a_choice_is_one_of_the_lines(ctx: JobNodeContext) -> None:
    got = {
        await choose(ctx, model="tiny", prompt="?", choices=" red\ngreen \n\nred", temperature=2.0, seed=seed)
        for seed in range(8)
    }
    assert got == {("red", 0), ("green", 1)}
    with pytest.raises(NodeInputError, match="nothing to choose"):
        await choose(ctx, model="tiny", prompt="?", choices=" \n")


async def test_a_text_becomes_a_vector_of_length_one(ctx: JobNodeContext) -> None:
    one = await embed(ctx, model="tiny", text="a turtle")
    other = await embed(ctx, model="tiny", text="x")
    assert len(one) == len(other) == 64
    assert sum(value * value for value in one) == pytest.approx(1, abs=1e-5)
    assert one != other


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", '{"scenes": [{"title": "sea"}, {"title": "ö", "n": 2}], "a b": null}'),
        ("scenes[0].title", "sea"),
        ("scenes[-1].n", "2"),
        ("scenes[1]", '{"title": "ö", "n": 2}'),
        ("a b", "null"),
    ],
)
def test_a_path_leads_to_a_part(path: str, text: str) -> None:
    whole = {"scenes": [{"title": "sea"}, {"title": "ö", "n": 2}], "a b": None}
    assert extract(json=whole, path=path)[0] == text
    assert extract(json=json.dumps(whole), path=path) == extract(json=whole, path=path)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("scene", "there is no 'scene'; there is scenes"),
        ("scenes[5]", "there is no entry 5; there are 1"),
        ("scenes.title", "needs an object"),
        ("[0]", "needs an array"),
        ("scenes[x]", "is no path"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, says: str) -> None:
    with pytest.raises(NodeInputError, match=says.replace("[", r"\[")):
        extract(json={"scenes": [{}]}, path=path)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(NodeInputError, match="no JSON"):
        extract(json="hello", path="a")
