"""Where the converter does better than the recorded editor, in its default mode."""

import json
import random
from typing import Any

import pytest

from app.workflow.convert import Conversion, convert
from app.workflow.schema import NotAWorkflow
from tests.pure.workflow.drawn import DEFINITIONS, GOLDEN, graph, node, subgraph, with_subgraphs


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
            for entry in workflow["nodes"]:
                entry[hole] = replacement
            if hole in workflow and hole != "nodes":
                workflow[hole] = replacement
            convert(workflow, DEFINITIONS)


# --- values that do not fit -------------------------------------------------------------------------------


def described(inputs: dict[str, Any], optional: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"X": {"input": {"required": inputs, "optional": optional or {}}, "output": [], **more}}


INT = ["INT", {"default": 1}]
UPLOAD = described({"image": [["a.png"], {"image_upload": True}]}, {"n": INT, "m": INT})


def with_values(definitions: dict[str, Any], values: Any, **more: Any) -> Conversion:
    return convert(graph([node(1, "X", values=values, **more)]), definitions)


def test_a_missing_upload_button_is_put_in() -> None:
    conversion = with_values(UPLOAD, ["a.png", 4, 5])
    assert conversion.prompt["1"]["inputs"] == {"image": "a.png", "n": 4, "m": 5}
    assert [warning.rule for warning in conversion.report.warnings] == ["shifted"]
    assert not with_values(UPLOAD, ["a.png", "image", 4, 5]).report.warnings


def test_a_surplus_control_value_is_left_out() -> None:
    kind = described({"seed": ["INT", {"control_after_generate": False}], "n": INT})
    conversion = with_values(kind, [7, "randomize", 4])
    assert conversion.prompt["1"]["inputs"] == {"seed": 7, "n": 4}
    assert [warning.rule for warning in conversion.report.warnings] == ["shifted"]


def test_a_list_of_another_length_is_read_in_the_order_of_its_names() -> None:
    kind = described({"a": INT, "added": INT, "b": INT, "c": INT})
    conversion = with_values(kind, [5, 6, 7], widgets_values_named={"a": 0, "b": 0, "c": 0})
    assert conversion.prompt["1"]["inputs"] == {"a": 5, "added": 1, "b": 6, "c": 7}
    assert [warning.rule for warning in conversion.report.warnings] == ["named"]


def test_a_list_in_another_order_is_read_in_the_order_of_its_names() -> None:
    kind = described({"a": INT, "b": INT})
    conversion = with_values(kind, [5, 6], widgets_values_named={"b": 0, "a": 0})
    assert conversion.prompt["1"]["inputs"] == {"a": 6, "b": 5}


def test_of_names_and_positions_that_both_fit_the_positions_count() -> None:
    kind = described({"a": INT, "b": INT})
    conversion = with_values(kind, [5, 6], widgets_values_named={"a": 50, "b": 60})
    assert conversion.prompt["1"]["inputs"] == {"a": 5, "b": 6}
    assert not conversion.report.warnings
    # other names are no other order
    renamed = with_values(kind, [5, 6], widgets_values_named={"a": 50, "old": 60})
    assert renamed.prompt["1"]["inputs"] == {"a": 5, "b": 6}


def test_names_that_make_no_sense_are_not_followed() -> None:
    kind = described({"a": INT, "added": INT, "t": ["COMBO", {"options": ["x"]}]})
    conversion = with_values(kind, [5, 6], widgets_values_named={"a": 0, "t": 0})
    assert conversion.prompt["1"]["inputs"] == {"a": 5, "added": 6, "t": "x"}


def test_what_fits_no_known_shift_is_taken_as_it_is_with_a_warning() -> None:
    conversion = with_values(described({"a": INT, "b": INT}), ["x", "y"])
    assert conversion.prompt["1"]["inputs"] == {"a": "x", "b": "y"}
    assert [warning.rule for warning in conversion.report.warnings] == ["unfitting"]


def test_a_link_to_no_input_is_a_warning() -> None:
    workflow = graph([node(1, "T_Src"), node(2, "T_Sink")])
    workflow["links"] = [[1, 1, 0, 2, 9, "*"]]
    conversion = convert(workflow, DEFINITIONS)
    assert conversion.prompt["2"]["inputs"] == {}
    assert [warning.rule for warning in conversion.report.warnings] == ["slot"]


def test_the_values_of_a_missing_type_keep_their_names() -> None:
    nobody = node(1, "Nobody", values=[1, [2]], widgets_values_named={"a": 1, "b": [2]})
    assert convert(graph([nobody]), DEFINITIONS).prompt["1"]["inputs"] == {"a": 1, "b": {"__value__": [2]}}


# --- the report ------------------------------------------------------------------------------------------


def test_models_that_the_lists_do_not_offer_are_named() -> None:
    kind = described({"file": [["sub\\here.safetensors", "other.bin"]]})
    declared = [
        {"name": "here.safetensors", "url": "u", "directory": "vae"},
        {"name": "gone.safetensors", "url": "https://h/g", "directory": "vae", "note": 1},
    ]
    nodes = [
        node(1, "X", values=["x"], properties={"models": declared}),
        node(2, "X", values=["x"], properties={"models": declared}, mode=4),
        node(3, "T_Int", properties={"models": declared}),
    ]
    report = convert(graph(nodes), DEFINITIONS | kind).report
    assert report.missing_models == [
        {"node": "1", "name": "gone.safetensors", "url": "https://h/g", "directory": "vae"}
    ]


# --- seeds: left as they are saved, or moved on ------------------------------------------------------------


SEEDED = described({"seed": ["INT", {"min": 0, "max": 9, "step": 2}], "n": INT})
CHOOSES = described({"c": ["COMBO", {"options": ["a", "b1", "b2"], "control_after_generate": True}]})


def advanced(definitions: dict[str, Any], values: Any, seed: int = 0) -> Any:
    workflow = graph([node(1, "X", values=values)])
    conversion = convert(workflow, definitions, advance_seeds=True, rng=random.Random(seed))
    return next(iter(conversion.prompt["1"]["inputs"].values()))


@pytest.mark.parametrize("control", ["fixed", "increment", "decrement", "randomize"])
def test_a_seed_stays_as_it_is_unless_asked(control: str) -> None:
    assert with_values(SEEDED, [4, control, 1]).prompt["1"]["inputs"]["seed"] == 4


@pytest.mark.parametrize(
    ("saved", "control", "expected"),
    [(4, "fixed", 4), (4, "increment", 6), (8, "increment", 9), (4, "decrement", 2), (1, "decrement", 0)],
)
def test_a_seed_moves_on_by_its_step_and_stops_at_its_bounds(saved: int, control: str, expected: int) -> None:
    assert advanced(SEEDED, [saved, control, 1]) == expected


def test_random_seeds_are_drawn_from_the_range_in_steps() -> None:
    assert {advanced(SEEDED, [4, "randomize", 1], seed) for seed in range(60)} == {0, 2, 4, 6, 8}
    huge = described({"seed": ["INT", {"max": 2**64 - 1}]})
    assert 0 <= advanced(huge, [4, "randomize"]) <= 2**50


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "increment", ""], "b1"),
        (["b2", "increment", ""], "b2"),
        (["b2", "increment-wrap", ""], "a"),
        (["b1", "decrement", ""], "a"),
        (["b1", "increment-wrap", "B"], "b2"),
        (["b2", "increment-wrap", "/^b/"], "b1"),
        (["a", "increment", "/[/"], "a"),
    ],
)
def test_a_choice_moves_on_through_its_list(values: list[str], expected: str) -> None:
    assert advanced(CHOOSES, values) == expected


def test_a_promoted_seed_moves_on_at_the_host() -> None:
    box = subgraph("Box", [node(11, "X", "seed=INT", [1, "increment", 1])], ("in", 0, 11, "seed"), inputs="s")
    outer = subgraph("Outer", [node(12, "Box", "s=INT", [3])], ("in", 0, 12, "s"), inputs="t")
    workflow = with_subgraphs(graph([node(2, "Outer", values=[6])]), box, outer)
    conversion = convert(workflow, SEEDED, advance_seeds=True)
    assert conversion.prompt["2:12:11"]["inputs"]["seed"] == 8


def test_a_primitive_moves_on_for_all_that_it_feeds() -> None:
    nodes = [
        node(1, "PrimitiveNode", values=[4, "increment"]),
        node(2, "X", "seed=INT", [0, "fixed", 1]),
        node(3, "X", "seed=INT", [0, "fixed", 1]),
    ]
    workflow = graph(nodes, (1, 0, 2, "seed"), (1, 0, 3, "seed"))
    prompt = convert(workflow, SEEDED, advance_seeds=True).prompt
    assert [entry["inputs"]["seed"] for entry in prompt.values()] == [6, 6]
