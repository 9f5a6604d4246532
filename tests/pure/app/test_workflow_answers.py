"""What a chat gives finds its place in a workflow, and what nodes write becomes one text."""

from __future__ import annotations

from typing import Any

import pytest

from app.events import NodeFinished, NodeName, NodeText
from app.openai.workflow_inputs import filled
from app.openai.workflow_outputs import Said

DEFINITIONS: dict[str, Any] = {
    "Writer": {"input": {"required": {"model": ["MODEL"], "text": ["STRING", {}], "seed": ["INT", {}]}}},
    "PrimitiveString": {"input": {"required": {"value": ["STRING", {}]}}},
    "Loader": {"input": {"required": {"image": [[], {"image_upload": True}]}}},
    "Show": {"input": {"required": {"text": ["STRING", {}]}}, "output_node": True},
    "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output_node": True},
}
NAMES = {"w": "1", "v": "2", "show w": "3", "show v": "4", "save": "5"}


def node(kind: str, title: str = "", **inputs: Any) -> dict[str, Any]:
    return {"class_type": kind, "inputs": inputs, "_meta": {"title": title}}


@pytest.mark.parametrize(
    ("title", "name", "value", "expected"),
    [
        ("INPUT:  Prompt", "prompt", "p", {"text": "p"}),
        ("prompt", "prompt", "p", {"text": "p"}),
        ("Input: seed", "seed", 3, {"seed": 3}),
        ("Input: length", "length", 3, {"seed": 3}),
        ("Input: text", "text", 5, {"text": 5}),
        ("my prompt", "prompt", "p", {}),
    ],
)
def test_a_title_makes_a_node_the_place_of_a_value(
    title: str, name: str, value: Any, expected: dict[str, Any]
) -> None:
    before = {"text": "a", "seed": 1, "model": ["9", 0]}
    prompt = {"1": node("Writer", title, **before)}
    result, placed = filled(prompt, {name: value}, DEFINITIONS)
    assert result["1"]["inputs"] == before | expected
    assert placed == ({name} if expected else set())
    assert prompt["1"]["inputs"] == before, "what was saved stays"


def test_linked_inputs_stay_and_the_only_primitive_text_takes_a_prompt() -> None:
    prompt = {
        "1": node("Writer", "Prompt", text=["2", 0]),
        "2": node("PrimitiveString", "Idea", value="a"),
        "3": node("Loader", "Input: image", image="a.png"),
    }
    result, placed = filled(prompt, {"prompt": "p", "image": "b.png [temp]"}, DEFINITIONS)
    assert placed == {"image", "prompt"}
    assert result["3"]["inputs"]["image"] == "b.png [temp]"
    assert result["1"]["inputs"] == {"text": ["2", 0]}, "the node called Prompt has no free place"
    assert result["2"]["inputs"] == {"value": "p"}
    prompt["4"] = node("PrimitiveString", "Another", value="b")
    assert filled(prompt, {"prompt": "p"}, DEFINITIONS)[1] == set()


def said(**titles: str) -> Said:
    prompt = {
        "5": node("Save", titles.get("save", ""), images=["9", 0]),
        "3": node("Show", titles.get("w", ""), text=["1", 0]),
        "4": node("Show", titles.get("v", ""), text=["2", 0]),
    }
    return Said.of(prompt, DEFINITIONS)


def name(id: str) -> NodeName:
    return NodeName(id, id)


def writes(who: str, text: str) -> NodeText:
    return NodeText("p", None, name(NAMES[who]), text)


def ends(who: str, **ui: Any) -> NodeFinished:
    return NodeFinished("p", None, name(NAMES[who]), ui or None)


def test_texts_are_told_as_they_grow_one_node_after_another() -> None:
    it = said()
    told = [
        it.hear(writes("v", "second")),
        it.hear(writes("w", "fi")),
        it.hear(writes("w", "first")),
        it.hear(ends("w")),
        it.hear(ends("show w", text=["first."])),
        it.hear(writes("v", "second on")),
        it.hear(ends("show v", text=["second on"])),
    ]
    assert told == ["", "fi", "rst", "", ".\n\nsecond", " on", ""]
    assert it.text == "first.\n\nsecond on"


def test_nodes_that_are_titled_output_speak_alone() -> None:
    it = said(v="Output: answer")
    assert it.hear(ends("show w", text=["one"])) == ""
    assert it.hear(ends("show v", text=["two"])) == "two"


def test_pictures_that_stay_come_before_those_that_were_only_shown() -> None:
    it = said()
    shown, saved = {"filename": "a.png", "type": "temp"}, {"filename": "b.png", "type": "output"}
    it.hear(ends("show w", images=[shown]))
    assert it.files == [shown]
    it.hear(ends("save", images=[saved]))
    assert it.files == [saved]
