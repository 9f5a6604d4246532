"""Answers of the tiny model at a high temperature keep to their grammars; what cannot be kept is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.llm import tool_calls
from runtime.llm.api import ChatRequest, CompleteRequest, Completion, Grammar, Message, SamplingParams, Tool
from runtime.llm.engine import Engine
from runtime.platform.errors import Unsupported
from tests.cpu.llm.conftest import save_random, tiny_llama

Start = Callable[..., Engine]


def schema(**keywords: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(keywords))


FITTING: Mapping[str, tuple[Grammar, Callable[[str], object]]] = {
    "an object": (
        schema(
            type="object",
            properties={"a": {"type": "boolean"}, "b": {"enum": [1, "x", None]}},
            required=["a", "b"],
            additionalProperties=False,
        ),
        lambda text: set(json.loads(text)) == {"a", "b"},
    ),
    "a short text": (schema(type="string", maxLength=5), lambda text: len(json.loads(text)) <= 5),
    "an array": (
        schema(type="array", items={"type": "integer", "minimum": -5, "maximum": 99}, minItems=2, maxItems=3),
        lambda text: 2 <= len(json.loads(text)) <= 3,
    ),
    "a pattern": (Grammar("regex", "(ab|c){2,6}[0-9]"), lambda text: re.fullmatch("(ab|c){2,6}[0-9]", text)),
    "a lark grammar": (
        Grammar("lark", 'start: word ("," word)? \nword: /[a-z]{1,4}/'),
        lambda text: re.fullmatch("[a-z]{1,4}(,[a-z]{1,4})?", text),
    ),
    "a choice": (Grammar("choice", '["yes", "yes, \\"sir\\"", "n\\u00f6"]'), lambda text: text[0] in "yn"),
}


def ask(id: str, grammar: Grammar | None, **params: Any) -> CompleteRequest:
    params = {"max_tokens": 60, "temperature": 2.0, "seed": int(id), "grammar": grammar} | params
    return CompleteRequest(id, "tiny", "write: ", SamplingParams(**params))


@pytest.mark.parametrize("kind", list(FITTING))
def test_an_answer_keeps_to_its_grammar_and_ends_with_it(start: Start, kind: str) -> None:
    grammar, fits = FITTING[kind]
    engine = start()
    handles = [engine.submit(ask(str(seed), grammar)) for seed in range(8)]
    answers = [handle.wait(60) for handle in handles]
    assert all(fits(answer.text) for answer in answers), [answer.text for answer in answers]
    assert {answer.finish_reason for answer in answers} == {"stop"}


def test_each_row_of_a_batch_keeps_to_its_own_grammar_and_answers_as_if_alone(start: Start) -> None:
    grammars = [*(grammar for grammar, _ in FITTING.values()), None]
    requests = [ask(str(number), grammar) for number, grammar in enumerate(grammars)]
    engine = start()
    handles = [engine.submit(request) for request in requests]
    together = [handle.wait(60).token_ids for handle in handles]
    assert together == [start(num_pages=64).submit(request).wait(60).token_ids for request in requests]


@pytest.mark.parametrize("outputs", [259, 333])
def test_outputs_beyond_the_vocabulary_fit_no_grammar(outputs: int, tmp_path: Path) -> None:
    config = tiny_llama()
    config.vocab_size = outputs
    folder = save_random(config, tmp_path / "padded")
    engine = Engine(lambda: {"tiny": folder}, threads=1, num_pages=64)
    handles = [
        engine.submit(ask(str(seed), FITTING["a choice"][0] if seed % 2 else None, logprobs=20))
        for seed in range(8)
    ]
    answers = [handle.wait(60) for handle in handles]
    engine.close()
    assert all(answer.text[0] in "yn" and max(answer.token_ids) < 258 for answer in answers[1::2])
    assert all(len(each.top) == 20 for answer in answers for each in answer.logprobs)


def test_a_grammar_survives_a_preemption(start: Start) -> None:
    grammar = schema(type="array", items={"type": "boolean"}, minItems=8, maxItems=8)
    engine = start(num_pages=10, page_size=4)
    handles = [engine.submit(ask(str(seed), grammar, max_tokens=120)) for seed in range(2)]
    long = [engine.submit(ask(str(seed), None, max_tokens=25, ignore_eos=True)) for seed in (10, 11)]
    texts = [handle.wait(60) for handle in handles]
    assert all(handle.wait(60) for handle in long)
    assert engine.stats()["tiny"].preemptions > 0
    for answer in texts:
        assert isinstance(answer, Completion)
        whole = answer.text if answer.finish_reason == "stop" else "[]"
        assert all(isinstance(each, bool) for each in json.loads(whole))


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        (schema(**{"not": {"type": "string"}}), "keywords that cannot be enforced: not"),
        (schema(type="array", uniqueItems=True), "uniqueItems"),
        (schema(type="nonsense"), "nonsense"),
        (Grammar("json_schema", "[1"), "not valid JSON"),
        (Grammar("json_schema", "7"), "must be a JSON object"),
        (Grammar("regex", "[a-"), "regular expression cannot be enforced"),
        (Grammar("lark", "start: missing"), "unknown name"),
        (Grammar("choice", "[]"), "at least one text"),
        (Grammar("choice", '["\\ud800"]'), "cannot be enforced"),
    ],
)
def test_a_grammar_that_cannot_be_kept_is_refused_with_its_reason(
    start: Start, grammar: Grammar, says: str
) -> None:
    with pytest.raises(Unsupported, match=says):
        start().submit(ask("1", grammar)).wait(30)


@pytest.mark.parametrize("more", [{"ignore_eos": True}, {"min_tokens": 3}])
def test_a_grammar_decides_alone_where_an_answer_ends(start: Start, more: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="a grammar decides"):
        start().submit(ask("1", FITTING["an object"][0], **more)).wait(30)


@pytest.mark.parametrize("style", list(tool_calls.styles))
def test_a_demanded_call_is_one_that_its_style_reads(start: Start, style: str) -> None:
    tools = (
        Tool("add", parameters=json.dumps({"type": "object", "properties": {"a": {"type": "boolean"}},
                                           "required": ["a"], "additionalProperties": False})),
        Tool("now", parameters=json.dumps({"type": "object", "additionalProperties": False})),
    )  # fmt: skip
    grammar = tool_calls.demand(tool_calls.styles[style], tools)
    answer = start().submit(ask("3", grammar, max_tokens=120)).wait(60)
    stream = tool_calls.ToolStream(tool_calls.styles[style], tools)
    found = [stream.push(answer.text), stream.finish()]
    assert [call.name in ("add", "now") for each in found for call in each.calls] == [True], answer.text
    assert all(each.text == "" for each in found)


def test_an_answer_that_must_call_has_calls_and_no_text(start: Start) -> None:
    tool = Tool("now", parameters='{"type": "object", "properties": {"at": {"enum": ["noon", "dawn"]}}, '
                '"required": ["at"], "additionalProperties": false}')  # fmt: skip
    params = SamplingParams(max_tokens=120, seed=1)
    request = ChatRequest("1", "tiny", (Message("user", "x"),), params, (tool,), ("now",))
    answer = start().submit(request).wait(60)
    assert answer.text == ""
    assert [call.name for call in answer.tool_calls] == ["now"]
    assert json.loads(answer.tool_calls[0].arguments)["at"] in ("noon", "dawn")
