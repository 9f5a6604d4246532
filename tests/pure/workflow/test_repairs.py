"""Where the converter does better than the recorded editor, in its default mode."""

import json
from typing import Any

import pytest

from app.workflow.convert import Conversion, convert
from app.workflow.schema import NotAWorkflow
from tests.pure.workflow.drawn import DEFINITIONS, GOLDEN


def case(name: str) -> dict[str, Any]:
    workflow: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())["workflow"]
    return workflow


def converted(name: str) -> Conversion:
    return convert(case(name), DEFINITIONS)


def test_a_missing_control_value_is_put_in() -> None:
    conversion = converted("a13_seed_no_ctl_saved")
    sampler = conversion.prompt["5"]["inputs"]
    assert (sampler["seed"], sampler["steps"], sampler["cfg"]) == (123, 20, 8)
    assert (sampler["sampler_name"], sampler["scheduler"]) == ("euler", "normal")
    assert [warning.rule for warning in conversion.report.warnings] == ["shifted"]


def test_values_that_are_only_named_are_taken_by_name() -> None:
    assert converted("a08_named_only").prompt["1"]["inputs"] == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_a_muted_instance_inside_a_subgraph_hides_its_contents() -> None:
    assert set(converted("e11_nested_inner_muted").prompt) == {"1", "3"}


def test_a_primitive_reaches_through_a_reroute() -> None:
    assert converted("d11_primitive_via_reroute").prompt["5"]["inputs"]["seed"] == 777


def test_a_primitive_reaches_into_a_subgraph() -> None:
    assert converted("e19_primitive_into_sub").prompt["2:12"]["inputs"]["value"] == 777


def test_an_input_wired_straight_to_an_output_passes_through() -> None:
    assert converted("e15_sub_passthrough").prompt["3"]["inputs"] == {"x": ["1", 0]}


def test_a_dangling_link_is_a_warning() -> None:
    conversion = converted("d18_dangling_origin")
    assert conversion.prompt["5"]["inputs"] == {}
    assert [warning.rule for warning in conversion.report.warnings] == ["dangling"]


def test_a_missing_type_is_named_with_its_nodes() -> None:
    conversion = converted("d19_missing_type")
    assert conversion.report.missing_types == {"NoSuchNode": ["1"]}
    assert conversion.prompt["1"]["class_type"] == "NoSuchNode"


def test_a_loop_of_reroutes_is_a_warning() -> None:
    workflow = {
        "nodes": [
            {"id": 1, "type": "Reroute", "inputs": [{"name": "", "type": "*", "link": 2}]},
            {"id": 2, "type": "Reroute", "inputs": [{"name": "", "type": "*", "link": 1}]},
            {"id": 3, "type": "T_Sink", "inputs": [{"name": "x", "type": "*", "link": 3}]},
        ],
        "links": [[1, 1, 0, 2, 0, "*"], [2, 2, 0, 1, 0, "*"], [3, 2, 0, 3, 0, "*"]],
    }
    conversion = convert(workflow, DEFINITIONS)
    assert conversion.prompt["3"]["inputs"] == {}
    assert [warning.rule for warning in conversion.report.warnings] == ["loop"]


def test_a_subgraph_that_contains_itself_is_refused() -> None:
    inner = {"id": "self", "name": "Self", "nodes": [{"id": 5, "type": "self"}], "links": []}
    workflow = {
        "nodes": [{"id": 1, "type": "self"}],
        "links": [],
        "definitions": {"subgraphs": [inner]},
    }
    with pytest.raises(ValueError, match="contains itself"):
        convert(workflow, DEFINITIONS)


@pytest.mark.parametrize("document", [None, [], {}, {"nodes": 3}, {"1": {"class_type": "T_Src"}}])
def test_something_else_is_refused_with_a_sentence(document: Any) -> None:
    with pytest.raises(NotAWorkflow, match="list 'nodes'"):
        convert(document, DEFINITIONS)


@pytest.mark.parametrize("hole", ["nodes", "links", "inputs", "outputs", "widgets_values", "properties"])
def test_a_damaged_file_never_raises_anything_else(hole: str) -> None:
    for path in sorted(GOLDEN.glob("[a-h][0-9]*.json")):
        workflow = json.loads(path.read_text())["workflow"]
        for replacement in (None, 7, "x", [None], {"a": 1}):
            for node in workflow["nodes"]:
                node[hole] = replacement
            if hole in workflow and hole != "nodes":
                workflow[hole] = replacement
            convert(workflow, DEFINITIONS)
