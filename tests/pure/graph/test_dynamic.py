"""Inputs that become several: declared once, flat in the prompt, nested for the node."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from app.graph.dynamic import live_slots, nested
from app.graph.run import run_job
from nodes.declare import spec_of
from nodes.spec import CASES, GROWING, NodeResult, Slot
from nodes.types import Cases, Float, Grows, Image, Int, Options
from tests.fakes import FakeLibrary, World, box, world
from tests.pure.graph.boxes import specs

Multiplier = Annotated[float, Float(0.01, 8.0, 0.01), Options({"default": 1.0})]


def batch(*, images: Annotated[dict[str, Any], Grows(Image, "image", min=1, max=50)]) -> NodeResult:
    return NodeResult((sum(images.values()),), ui={"got": [images]})


def resize(
    *,
    how: Annotated[
        dict[str, Any],
        Cases(
            {
                "by factor": {"factor": Multiplier},
                "to side": {"side": Annotated[int, Int(1, 64)], "crop": Literal["no", "yes"]},
            }
        ),
    ],
) -> NodeResult:
    return NodeResult(ui={"got": [how]})


@pytest.fixture
def here(tmp_path) -> World:
    return world(
        [
            *specs(),
            spec_of(batch, "Batch", category="t", returns=[Image], is_output=True),
            spec_of(resize, "Resize", category="t", is_output=True),
        ],
        tmp_path,
    )


def test_they_are_described_as_comfyui_does(here: World):
    assert here.registry.object_info("Batch", FakeLibrary())["input"] == {
        "required": {
            "images": [
                "COMFY_AUTOGROW_V3",
                {
                    "template": {
                        "input": {"required": {"image": ["IMAGE", {}]}},
                        "max": 50,
                        "min": 1,
                        "prefix": "image",
                    }
                },
            ]
        }
    }
    (kind, options) = here.registry.object_info("Resize", FakeLibrary())["input"]["required"]["how"]
    assert kind == "COMFY_DYNAMICCOMBO_V3"
    assert options["options"][0] == {
        "key": "by factor",
        "inputs": {
            "required": {"factor": ["FLOAT", {"min": 0.01, "max": 8.0, "step": 0.01, "default": 1.0}]}
        },
    }
    assert options["options"][1]["inputs"]["required"]["crop"] == [
        "COMBO",
        {"options": ["no", "yes"], "multiselect": False},
    ]


async def test_a_growing_input_arrives_as_a_dict(here: World):
    prompt = {
        "1": box("Picture", size=3),
        "2": box("Picture", size=4),
        "3": box("Batch", **{"images.image0": ["1", 0], "images.image4": ["2", 0]}),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["3"] == {"got": [{"image0": 3, "image4": 4}]}


async def test_a_case_arrives_with_its_own_inputs(here: World):
    prompt = {"1": box("Resize", how="by factor", **{"how.factor": "2.5", "how.side": 9})}
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["1"] == {"got": [{"how": "by factor", "factor": 2.5}]}


def test_the_first_of_a_growing_input_is_required(here: World):
    (error,) = here.rejected({"1": box("Batch")})["node_errors"]["1"]["errors"]
    assert error["type"] == "required_input_missing"
    assert error["details"] == "image0"
    assert error["extra_info"] == {"input_name": "images.image0"}


def test_inner_inputs_are_checked_like_any_other(here: World):
    prompt = {"1": box("Number", value=1), "2": box("Batch", **{"images.image0": ["1", 0]})}
    (error,) = here.rejected(prompt)["node_errors"]["2"]["errors"]
    assert error["type"] == "return_type_mismatch"
    prompt = {"1": box("Resize", how="to side", **{"how.side": 65, "how.crop": "maybe"})}
    errors = here.rejected(prompt)["node_errors"]["1"]["errors"]
    assert [error["type"] for error in errors] == ["value_bigger_than_max", "value_not_in_list"]
    (error,) = here.rejected({"1": box("Resize", how="sideways")})["node_errors"]["1"]["errors"]
    assert error["details"] == "how: 'sideways' not in ['by factor', 'to side']"


def test_a_value_for_the_growing_input_itself_is_refused(here: World):
    prompt = {
        "1": box("Picture", size=3),
        "2": box("Batch", **{"images": ["1", 0], "images.image0": ["1", 0]}),
    }
    (error,) = here.rejected(prompt)["node_errors"]["2"]["errors"]
    assert error["type"] == "return_type_mismatch"


def test_dynamic_inputs_nest():
    inner = [
        GROWING,
        {"template": {"input": {"optional": {"x": ["INT", {}]}}, "names": ["a", "b"], "min": 0}},
    ]
    outer = Slot(
        "how", CASES, options={"options": [{"key": "many", "inputs": {"required": {"list": inner}}}]}
    )
    given = {"how": "many", "how.list.b": 1}
    slots = live_slots([outer], given)
    assert [slot.name for slot in slots] == ["how", "how.list", "how.list.b"]
    assert nested(slots, given) == {"how": {"how": "many", "list": {"b": 1}}}
    assert nested(live_slots([outer], {"how": "many"}), {"how": "many"}) == {
        "how": {"how": "many", "list": {}}
    }
