"""The example workflows: both forms say the same, and each is valid where only the embedded models are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.files import Files
from app.graph.validate import ValidGraph, parse_and_validate
from app.workflow.convert import convert
from nodes.registry import Registry

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    registry.load_builtin()
    return registry


def test_there_are_examples_in_both_forms() -> None:
    assert {"text_to_image", "llm_to_image"} <= set(NAMES)
    assert sorted(path.stem for path in (EXAMPLES / "api").glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_saved_workflow_is_the_prompt(name: str, registry: Registry, files: Files) -> None:
    definitions = {id: registry.object_info(id, files) for id in registry}
    converted = convert(read(EXAMPLES / f"{name}.json"), definitions)
    assert converted.prompt == read(EXAMPLES / "api" / f"{name}.json")


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_valid_with_the_embedded_models_alone(
    name: str, registry: Registry, files: Files
) -> None:
    prompt = read(EXAMPLES / "api" / f"{name}.json")
    valid = parse_and_validate(prompt, registry, files)
    assert isinstance(valid, ValidGraph), valid
    assert not valid.node_errors
    assert set(valid.graph.nodes) == set(prompt)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_workflow_is_titled_and_its_nodes_do_not_overlap(name: str) -> None:
    document = read(EXAMPLES / f"{name}.json")
    assert document["extra"]["title"]
    boxes = [(*node["pos"], *node["size"]) for node in document["nodes"]]
    for i, (x, y, width, height) in enumerate(boxes):
        for left, top, other_width, other_height in boxes[i + 1 :]:
            apart = (
                x + width <= left or left + other_width <= x or y + height <= top or top + other_height <= y
            )
            assert apart, (boxes[i], (left, top))
