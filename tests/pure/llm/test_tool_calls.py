"""Calls are found in answers however the text is cut, and what is no call stays text."""

from __future__ import annotations

import json
import random

import pytest

from runtime.llm.api import Tool, ToolCall
from runtime.llm.tool_calls import Found, ToolStream, demand, instructions, style_of, styles, written

TOOLS = (Tool("add", "Sum", '{"type": "object", "properties": {"a": {"type": "integer"}}}'), Tool("now"))
CALL = '{"name": "add", "arguments": {"a": 1}}'
ANSWERS = [
    ("hermes", f"<tool_call>\n{CALL}\n</tool_call>", "", ["add"]),
    ("hermes", f"Let me see.<tool_call>{CALL}</tool_call>", "Let me see.", ["add"]),
    (
        "hermes",
        f'<tool_call>{CALL}</tool_call>\n<tool_call>{{"name": "now"}}</tool_call>\n',
        "",
        ["add", "now"],
    ),
    ("hermes", f'<tool_call>[{CALL}, {{"name": "now", "arguments": {{}}}}]</tool_call>', "", ["add", "now"]),
    ("hermes", f"<tool_call>{CALL}", "", ["add"]),
    ("hermes", "1 < 2 <tool", "1 < 2 <tool", []),
    ("hermes", "<tool_call>no JSON</tool_call> on", "<tool_call>no JSON</tool_call> on", []),
    ("hermes", '<tool_call>{"name": "rm"}</tool_call>', '<tool_call>{"name": "rm"}</tool_call>', []),
    ("hermes", '<tool_call>{"name": "add", "arguments": 3}</tool_call>', None, []),
    ("hermes", "<tool_call>{", "<tool_call>{", []),
    ("mistral", f"[TOOL_CALLS][{CALL}]", "", ["add"]),
    ("mistral", f"Well [x] [TOOL_CALLS] [{CALL}]", "Well [x] ", ["add"]),
    ("llama", '{"name": "add", "parameters": {"a": 1}}', "", ["add"]),
    ("llama", '\n<|python_tag|>{"name": "add", "parameters": {"a": 1}}', "", ["add"]),
    ("llama", "{ is a brace", "{ is a brace", []),
    ("llama", "<b> {}", "<b> {}", []),
]


def read(style: str, pieces: list[str]) -> Found:
    stream = ToolStream(styles[style], TOOLS)
    found = [stream.push(piece) for piece in pieces] + [stream.finish()]
    return Found("".join(each.text for each in found), tuple(call for each in found for call in each.calls))


@pytest.mark.parametrize(("style", "answer", "text", "names"), ANSWERS)
def test_text_and_calls_are_parted_the_same_however_the_answer_is_cut(
    style: str, answer: str, text: str | None, names: list[str]
) -> None:
    choose = random.Random(0)
    cuts = [[answer], list(answer)]
    for _ in range(20):
        places = sorted(choose.sample(range(len(answer) + 1), 3))
        cuts.append([answer[a:b] for a, b in zip([0, *places], [*places, len(answer)])])
    for pieces in cuts:
        found = read(style, pieces)
        assert [call.name for call in found.calls] == names, pieces
        assert found.text == (answer if text is None else text), pieces
        assert all(isinstance(json.loads(call.arguments), dict) for call in found.calls)


def test_text_that_begins_no_marker_is_shown_at_once() -> None:
    stream = ToolStream(styles["hermes"], TOOLS)
    assert stream.push("a < b").text == "a < b"
    assert stream.push(" <tool").text == " "
    assert stream.push("box>").text == "<toolbox>"


def test_calls_have_ids_of_their_own() -> None:
    ids = {
        call.id
        for _ in range(3)
        for call in read("hermes", [f"<tool_call>[{CALL}, {CALL}]</tool_call>"]).calls
    }
    assert len(ids) == 6


def test_templates_tell_their_style() -> None:
    assert style_of("... <tool_call> ...") is styles["hermes"]
    assert style_of("... [TOOL_CALLS] ...") is styles["mistral"]
    assert style_of("role: ipython") is styles["llama"]
    assert style_of("{{ message.content }}") is styles["hermes"]


def test_what_a_model_is_told_names_every_tool_and_reads_back() -> None:
    text = instructions(TOOLS)
    assert '"add"' in text
    assert '"now"' in text
    calls = (ToolCall("1", "add", '{"a": 2}'), ToolCall("2", "now", "{}"))
    assert [call.name for call in read("hermes", [written(calls)]).calls] == ["add", "now"]


@pytest.mark.parametrize("style", list(styles))
def test_a_demand_is_a_grammar_with_every_tool(style: str) -> None:
    grammar = demand(styles[style], TOOLS)
    assert grammar.kind == "lark"
    assert '"add"' in grammar.text
    assert '"now"' in grammar.text
