"""What a body says an answer must look like, in the words of OpenAI, vLLM or SGLang, as one grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.errors import BadRequest
from app.openai.types import ChatBody, ResponseFormat, Sampling, StructuredOutputs
from runtime.llm.api import Grammar


def grammar_of(body: Sampling) -> Grammar | None:
    """Raises `BadRequest` where two fields speak of it."""
    found = [*_of_format(body), *_of_structured_outputs(body.structured_outputs), *_of_single_fields(body)]
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        raise BadRequest(f"{names} exclude each other: an answer has one form")
    return found[0][1] if found else None


def _of_format(body: Sampling) -> Iterator[tuple[str, Grammar]]:
    given = body.response_format if isinstance(body, ChatBody) else None
    if given is None or given.type == "text":
        return
    match given.type:
        case "json_object":
            yield "response_format", _schema({"type": "object"})
        case "json_schema":
            if given.json_schema is None or given.json_schema.schema_ is None:
                raise BadRequest("response_format of type json_schema needs json_schema.schema")
            yield "response_format", _schema(given.json_schema.schema_)
        case "structural_tag":
            yield "response_format", _tags(given)


def _tags(given: ResponseFormat) -> Grammar:
    if not given.structures or not given.triggers:
        raise BadRequest("response_format of type structural_tag needs structures and triggers")
    structures = [each.model_dump(by_alias=True) for each in given.structures]
    return Grammar("structural_tag", json.dumps({"structures": structures, "triggers": given.triggers}))


def _of_structured_outputs(given: StructuredOutputs | None) -> Iterator[tuple[str, Grammar]]:
    if given is None:
        return
    grammars = [
        *([] if given.json_ is None else [_schema(given.json_)]),
        *([] if given.regex is None else [Grammar("regex", given.regex)]),
        *([] if given.choice is None else [_choice(given.choice)]),
        *([] if given.grammar is None else [Grammar("lark", given.grammar)]),
    ]
    if len(grammars) != 1:
        raise BadRequest("structured_outputs takes exactly one of json, regex, choice and grammar")
    yield "structured_outputs", grammars[0]


def _of_single_fields(body: Sampling) -> Iterator[tuple[str, Grammar]]:
    for name in ("json_schema", "guided_json"):
        if (schema := getattr(body, name)) is not None:
            yield name, _schema(schema)
    for name in ("regex", "guided_regex"):
        if (text := getattr(body, name)) is not None:
            yield name, Grammar("regex", text)
    for name in ("ebnf", "guided_grammar"):
        if (text := getattr(body, name)) is not None:
            yield name, Grammar("lark", text)
    if body.guided_choice is not None:
        yield "guided_choice", _choice(body.guided_choice)


def _choice(texts: list[str]) -> Grammar:
    return Grammar("choice", json.dumps(texts))


def _schema(schema: dict[str, Any] | str) -> Grammar:
    return Grammar("json_schema", schema if isinstance(schema, str) else json.dumps(schema))
