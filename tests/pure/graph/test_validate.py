"""Every complaint of the protocol, in its exact form."""

from __future__ import annotations

import copy
import json

import pytest

from app.graph.validate import ValidGraph, parse_and_validate
from nodes.declare import spec_of
from nodes.spec import Output
from tests.fakes import FakeLibrary, World, box, world
from tests.pure.graph.boxes import specs


@pytest.fixture
def here(tmp_path):
    return world(specs(), tmp_path)


def only_error(body: dict, node: str) -> dict:
    assert list(body["node_errors"]) == [node]
    (error,) = body["node_errors"][node]["errors"]
    return error


def through_show(class_type: str, **inputs) -> dict:
    return {"1": box(class_type, **inputs), "2": box("Show", value=["1", 0])}


@pytest.mark.parametrize("prompt", [None, [], "text", 3])
def test_a_prompt_that_is_no_object_is_rejected(here: World, prompt):
    assert here.rejected(prompt)["error"]["type"] == "invalid_prompt"


def test_an_empty_prompt_has_no_outputs(here: World):
    assert here.rejected({}) == {
        "error": {
            "type": "prompt_no_outputs",
            "message": "Prompt has no outputs",
            "details": "",
            "extra_info": {},
        },
        "node_errors": {},
    }


@pytest.mark.parametrize("entry", [None, [], {}, {"inputs": {}}, {"class_type": 3, "inputs": {}}])
def test_a_node_without_a_class_is_named(here: World, entry):
    assert here.rejected({"5": entry})["error"] == {
        "type": "missing_node_type",
        "message": "Node '5' has no class_type. The workflow may be corrupted or a custom node is missing.",
        "details": "Node ID '#5'",
        "extra_info": {"node_id": "5", "class_type": None, "node_title": "5"},
    }


def test_an_unknown_class_is_named_even_off_the_path(here: World):
    prompt = through_show("Number", value=1) | {"7": box("Nowhere") | {"_meta": {"title": "My box"}}}
    assert here.rejected(prompt)["error"] == {
        "type": "missing_node_type",
        "message": "Node 'My box' not found. The custom node may not be installed.",
        "details": "Node ID '#7'",
        "extra_info": {"node_id": "7", "class_type": "Nowhere", "node_title": "My box"},
    }


def test_a_missing_input_upstream_leaves_the_details_empty(here: World):
    body = here.rejected(through_show("Add", a=1))
    assert body["error"] == {
        "type": "prompt_outputs_failed_validation",
        "message": "Prompt outputs failed validation",
        "details": "",
        "extra_info": {},
    }
    assert body["node_errors"] == {
        "1": {
            "errors": [
                {
                    "type": "required_input_missing",
                    "message": "Required input is missing",
                    "details": "b",
                    "extra_info": {"input_name": "b"},
                }
            ],
            "dependent_outputs": ["2"],
            "class_type": "Add",
        }
    }


def test_errors_on_the_output_itself_are_in_the_details(here: World):
    body = here.rejected({"1": box("Show")})
    assert body["error"]["details"] == "Required input is missing: value"


@pytest.mark.parametrize("link", [["1"], ["1", 0, 0], []])
def test_a_list_of_another_length_is_a_bad_link(here: World, link):
    error = only_error(here.rejected({"2": box("Show", value=link)}), "2")
    assert error["type"] == "bad_linked_input"
    assert error["details"] == "value"
    assert error["extra_info"] == {"input_name": "value", "input_config": ["*"], "received_value": link}


def test_a_link_of_the_wrong_type_names_both(here: World):
    prompt = {"1": box("Picture", size=1), "2": box("Add", a=1, b=["1", 0]), "3": box("Show", value=["2", 0])}
    error = only_error(here.rejected(prompt), "2")
    assert error == {
        "type": "return_type_mismatch",
        "message": "Return type mismatch between linked nodes",
        "details": "b, received_type(IMAGE) mismatch input_type(INT)",
        "extra_info": {
            "input_name": "b",
            "input_config": ["INT", {"default": 0}],
            "received_type": "IMAGE",
            "linked_node": ["1", 0],
        },
    }


def test_a_value_of_the_wrong_kind_shows_why(here: World):
    error = only_error(here.rejected(through_show("Small", b="abc", c="x", d=0, e=True)), "1")
    assert error["type"] == "invalid_input_type"
    assert error["message"] == "Failed to convert an input value to a INT value"
    assert error["details"] == "b, abc, invalid literal for int() with base 10: 'abc'"
    assert error["extra_info"]["received_value"] == "abc"
    assert error["extra_info"]["exception_message"] == "invalid literal for int() with base 10: 'abc'"


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {"a": 1}, None])
def test_values_that_are_no_numbers_are_complained_about(here: World, value):
    error = only_error(here.rejected(through_show("Small", b=value, c="x", d=0, e=True)), "1")
    assert error["type"] == "invalid_input_type"


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (-1, "value_smaller_than_min", "Value -1 smaller than min of 0"),
        (11, "value_bigger_than_max", "Value 11 bigger than max of 10"),
    ],
)
def test_values_out_of_range(here: World, value, kind, message):
    error = only_error(here.rejected(through_show("Small", b=value, c="x", d=0, e=True)), "1")
    assert (error["type"], error["message"], error["details"]) == (kind, message, "b")
    assert error["extra_info"] == {
        "input_name": "b",
        "input_config": ["INT", {"default": 0, "min": 0, "max": 10}],
        "received_value": value,
    }


def test_a_value_that_is_not_in_the_list(here: World):
    error = only_error(here.rejected(through_show("Small", b=1, c="zz", d=0, e=True)), "1")
    assert error == {
        "type": "value_not_in_list",
        "message": "Value not in list",
        "details": "c: 'zz' not in ['x', 'y']",
        "extra_info": {"input_name": "c", "input_config": [["x", "y"]], "received_value": "zz"},
    }


def test_a_long_list_is_not_repeated(here: World):
    here.library.folders["input"] = []
    many = [f"model {i}" for i in range(44)]

    from typing import Annotated

    from nodes.types import Files

    def load(name):
        return 1

    load.__annotations__ = {"name": Annotated[str, Files("checkpoints")], "return": int}
    here.registry._specs["Loader"] = spec_of(load, "Loader", category="t")
    here.library.folders["checkpoints"] = many
    error = only_error(here.rejected(through_show("Loader", name="other")), "1")
    assert error["details"] == "name: 'other' not in (list of length 44)"
    assert error["extra_info"]["input_config"] is None


def test_a_missing_upload_is_a_failed_validation(here: World):
    error = only_error(here.rejected(through_show("Load", image="dog.png")), "1")
    assert error["type"] == "custom_validation_failed"
    assert error["message"] == "Custom validation failed for node"
    assert error["details"] == "image - Invalid image file: dog.png"


def test_an_upload_in_a_subfolder_is_accepted_when_it_is_there(here: World):
    here.library.stamps["input", "deep/cat.png [output]"] = "there"
    assert here.job(through_show("Load", image="deep/cat.png [output]")).valid.outputs == ("2",)


def test_a_nodes_own_check_speaks_for_itself(here: World):
    error = only_error(here.rejected(through_show("Checked", value=3)), "1")
    assert error == {
        "type": "custom_validation_failed",
        "message": "Custom validation failed for node",
        "details": "value - 3 is less than five",
        "extra_info": {"input_name": "value"},
    }


def test_a_linked_input_is_none_to_the_check(here: World):
    prompt = {
        "1": box("Number", value=1),
        "2": box("Checked", value=["1", 0]),
        "3": box("Show", value=["2", 0]),
    }
    assert here.job(prompt).valid.outputs == ("3",)


def test_a_link_into_nowhere_is_the_outputs_fault(here: World):
    error = only_error(here.rejected({"2": box("Show", value=["9", 0])}), "2")
    assert error["type"] == "exception_during_validation"
    assert error["details"] == "'9'"
    assert error["extra_info"]["exception_type"] == "KeyError"
    assert error["extra_info"]["traceback"] == [
        "Input 'value' of node 2 links to node 9, which the prompt does not have."
    ]


def test_a_link_to_a_missing_slot_upstream_is_told_with_its_consumer(here: World):
    prompt = {"1": box("Number", value=1), "2": box("Add", a=["1", 3], b=0), "3": box("Show", value=["2", 0])}
    body = here.rejected(prompt)
    error = only_error(body, "2")
    assert error["type"] == "exception_during_inner_validation"
    assert error["details"] == "tuple index out of range"
    assert error["extra_info"]["input_name"] == "value"
    assert error["extra_info"]["linked_node"] == ["2", 0]
    assert error["extra_info"]["exception_type"] == "IndexError"
    assert body["error"]["details"] == ""


def test_a_cycle_is_drawn(here: World):
    prompt = {
        "1": box("Add", a=["2", 0], b=0),
        "2": box("Add", a=["1", 0], b=0),
        "3": box("Show", value=["1", 0]),
    }
    error = only_error(here.rejected(prompt), "1")
    assert error["type"] == "dependency_cycle"
    assert error["message"] == "Dependency cycle detected"
    assert error["details"] == "1 (Add) -> 2 (Add) -> 1 (Add)"
    assert error["extra_info"] == {"node_id": "1", "cycle_nodes": ["1", "2"]}


def test_sound_outputs_run_without_the_others(here: World):
    prompt = through_show("Number", value=1) | {"3": box("Add", a=1), "4": box("Show", value=["3", 0])}
    valid = here.job(prompt).valid
    assert valid.outputs == ("2",)
    assert list(valid.node_errors_json()) == ["3"]
    assert valid.node_errors_json()["3"]["dependent_outputs"] == ["4"]


def test_two_outputs_on_one_bad_node_are_both_named(here: World):
    prompt = through_show("Add", a=1) | {"3": box("Show", value=["1", 0])}
    assert here.rejected(prompt)["node_errors"]["1"]["dependent_outputs"] == ["2", "3"]


def test_targets_keep_only_the_outputs_they_name(here: World):
    prompt = through_show("Number", value=1) | {"3": box("Show", value=["1", 0])}
    assert here.job(prompt, targets=["3", "1"]).valid.outputs == ("3",)
    assert here.rejected(prompt, targets=[])["error"]["type"] == "prompt_no_outputs"


def test_constants_become_their_type_and_the_posted_prompt_stays(here: World):
    prompt = through_show("Small", b="7", c="x", d="0.25", e="false")
    posted = copy.deepcopy(prompt)
    graph = here.job(prompt).valid.graph
    assert graph.nodes["1"].constants == {"b": 7, "c": "x", "d": 0.25, "e": True}
    assert graph.prompt["1"]["inputs"] == {"b": 7, "c": "x", "d": 0.25, "e": True}
    assert prompt == posted


def test_a_wrapped_list_is_a_literal(here: World):
    graph = here.job({"2": box("Show", value={"__value__": ["1", 0]})}).valid.graph
    assert graph.nodes["2"].constants == {"value": ["1", 0]}


def test_undeclared_inputs_are_ignored(here: World):
    graph = here.job(through_show("Number", value=1, extra=["9", 0])).valid.graph
    assert graph.nodes["1"].links == {}


def test_a_node_without_inputs_key_misses_what_it_needs(here: World):
    error = only_error(here.rejected({"1": {"class_type": "Show"}}), "1")
    assert error["type"] == "required_input_missing"


def test_a_chain_longer_than_the_stack_is_no_trouble(here: World):
    prompt = {"0": box("Number", value=0)}
    prompt |= {str(i): box("Add", a=[str(i - 1), 0], b=1) for i in range(1, 5000)}
    prompt["end"] = box("Show", value=["4999", 0])
    assert here.job(prompt).valid.outputs == ("end",)
    prompt["0"] = box("Add", a=["4999", 0], b=1)
    assert here.rejected(prompt)["node_errors"]["4999"]["errors"][0]["type"] == "dependency_cycle"


def test_a_check_that_raises_is_told_on_its_node(here: World):
    def picky(value):
        raise LookupError("no such shelf")

    def node(value):
        return value

    node.__annotations__ = {"value": int, "return": int}
    here.registry._specs["Picky"] = spec_of(node, "Picky", category="t", check=picky)
    error = only_error(here.rejected(through_show("Picky", value=1)), "1")
    assert error["type"] == "exception_during_inner_validation"
    assert error["details"] == "no such shelf"


def test_an_async_check_is_awaited(here: World):
    async def check(value):
        return "never"

    def node(value):
        return value

    node.__annotations__ = {"value": int, "return": int}
    here.registry._specs["Slow"] = spec_of(node, "Slow", category="t", check=check)
    assert only_error(here.rejected(through_show("Slow", value=1)), "1")["details"] == "value - never"


@pytest.mark.parametrize(
    "junk", [True, 5, "x", None, [[]], [["1", 0]], [None, None], ["1", True], ["1", "0"]]
)
def test_any_json_as_an_input_gives_an_answer_that_is_json(here: World, junk):
    prompt = through_show("Add", a=junk, b=junk)
    verdict = parse_and_validate(prompt, here.registry, here.library)
    body = verdict.node_errors_json() if isinstance(verdict, ValidGraph) else verdict.as_json()
    json.dumps(body)


def test_an_old_combo_output_feeds_an_equal_list_only(here: World):
    from dataclasses import replace

    def pick():
        return "x"

    pick.__annotations__ = {"return": str}
    spec = spec_of(pick, "Pick", category="t")
    for choices, fits in ((["x", "y"], True), (["x"], False)):
        here.registry._specs["Pick"] = replace(spec, outputs=(Output("COMBO", "c", choices=choices),))
        prompt = {
            "1": box("Pick"),
            "2": box("Small", b=1, c=["1", 0], d=0, e=True),
            "3": box("Show", value=["2", 0]),
        }
        verdict = parse_and_validate(prompt, here.registry, FakeLibrary())
        assert isinstance(verdict, ValidGraph) is fits


def test_inputs_that_are_no_object_are_no_inputs(here: World):
    def lone():
        return 1

    lone.__annotations__ = {"return": int}
    here.registry._specs["Lone"] = spec_of(lone, "Lone", category="t")
    prompt = {"1": {"class_type": "Lone", "inputs": [1]}, "2": box("Show", value=["1", 0])}
    assert here.job(prompt).valid.outputs == ("2",)
