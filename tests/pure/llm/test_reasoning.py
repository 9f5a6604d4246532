"""Thoughts and answers are told apart however the text is cut."""

from __future__ import annotations

import random

import pytest

from runtime.llm.reasoning import ReasoningStream, style_of, styles

STYLE = styles["think"]


def parted(text: str, begins_inside: bool, cuts: random.Random) -> tuple[str, str]:
    stream = ReasoningStream(STYLE, begins_inside=begins_inside)
    found = []
    while text:
        count = cuts.randint(1, 4)
        found.append(stream.push(text[:count]))
        text = text[count:]
    found.append(stream.finish())
    return "".join(each.reasoning for each in found), "".join(each.content for each in found)


@pytest.mark.parametrize(
    ("text", "begins_inside", "reasoning", "content"),
    [
        ("<think>\nso </be> it\n</think>\n\nYes.\n", False, "so </be> it", "Yes.\n"),
        ("\nso\n\nit </thin", True, "so\n\nit </thin", ""),
        ("so</think>a <think>b</think>", True, "so", "a <think>b</think>"),
        (" no <think> here</think>", False, "", " no <think> here</think>"),
        ("</think>\n\nYes", True, "", "Yes"),
        ("<think></think>Yes", False, "", "Yes"),
        ("<thi", False, "", "<thi"),
        ("", True, "", ""),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_markers_are_found_however_the_text_is_cut(
    text: str, begins_inside: bool, reasoning: str, content: str, seed: int
) -> None:
    assert parted(text, begins_inside, random.Random(seed)) == (reasoning, content)


def test_nothing_certain_is_held_back() -> None:
    stream = ReasoningStream(STYLE, begins_inside=True)
    assert stream.push("one two").reasoning == "one two"
    assert stream.push(" </t").reasoning == ""
    assert stream.push("o").reasoning == " </to"
    assert not stream.is_over


def test_a_style_is_known_by_its_template() -> None:
    assert style_of("{% if x %}</think>{% endif %}") is STYLE
    assert style_of("[THINK]...[/THINK]") is styles["mistral"]
    assert style_of("<|im_start|>") is None
