"""Workflows recorded from ComfyUI's own editor, with the prompt that it made of each."""

import json
from typing import Any

import pytest

from app.workflow.convert import convert
from tests.pure.workflow.drawn import DEFINITIONS, GOLDEN

BROWSER_MADE = "<made in the browser>"
CASES = sorted(path.stem for path in GOLDEN.glob("[a-h][0-9]*.json"))


def essence(prompt: dict[str, Any]) -> dict[str, Any]:
    return {key: (node.get("class_type"), node["inputs"]) for key, node in prompt.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_workflow_gives_the_recorded_prompt(name: str) -> None:
    case = json.loads((GOLDEN / f"{name}.json").read_text())
    prompt = convert(case["workflow"], DEFINITIONS, strict=True).prompt
    if "prompt" not in case:
        assert all(node["class_type"] in DEFINITIONS for node in prompt.values())
        return
    for key, node in case["prompt"].items():
        for input_name, value in node["inputs"].items():
            if value == BROWSER_MADE:
                prompt[key]["inputs"][input_name] = BROWSER_MADE
    assert essence(prompt) == essence(case["prompt"])
