"""The list of a node's widgets, and which saved value each of them takes."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from app.workflow.convert import convert
from tests.pure.workflow.drawn import DEFINITIONS, graph, node, subgraph, with_subgraphs


def definition(required: dict[str, Any], optional: dict[str, Any] | None = None, **more: Any) -> Any:
    order = {"required": list(required), "optional": list(optional or {})}
    return {
        "input": {"required": required, "optional": optional or {}},
        "input_order": order,
        "output": [],
        **more,
    }


def inputs_of(described: Any, values: Any, *, strict: bool = True, **more: Any) -> dict[str, Any]:
    workflow = graph([node(1, "X", values=values, **more)])
    inputs: dict[str, Any] = convert(workflow, {"X": described}, strict=strict).prompt["1"]["inputs"]
    return inputs


N = ["INT", {"default": 1}]


@pytest.mark.parametrize(
    ("seed", "values", "expected"),
    [
        (["INT", {}], [5, "fixed", 2], {"seed": 5, "n": 2}),
        (["INT", {"control_after_generate": False}], [5, 2], {"seed": 5, "n": 2}),
        (["INT", {"control_after_generate": "fixed"}], [5, "fixed", 2], {"seed": 5, "n": 2}),
        (["INT", {"control_after_generate": "my control"}], [5, "fixed", 2], {"seed": 5, "n": 2}),
        (["FLOAT", {}], [5, 2], {"seed": 5, "n": 2}),
        (["FLOAT", {"control_after_generate": True}], [5, "fixed", 2], {"seed": 5, "n": 2}),
        (["STRING", {}], ["5", 2], {"seed": "5", "n": 2}),
    ],
)
def test_a_control_follows_a_seed(seed: Any, values: Any, expected: Any) -> None:
    assert inputs_of(definition({"seed": seed, "n": N}), values) == expected


def test_the_seed_of_a_choice_has_no_control() -> None:
    options = [{"key": "a", "inputs": {"required": {"seed": ["INT", {}], "k": ["INT", {}]}}}]
    described = definition({"mode": ["COMFY_DYNAMICCOMBO_V3", {"options": options}], "n": N})
    assert inputs_of(described, ["a", 5, 6, 7]) == {"mode": "a", "mode.seed": 5, "mode.k": 6, "n": 7}


@pytest.mark.parametrize(
    ("combo", "values", "expected"),
    [
        (["COMBO", {"options": ["a"], "control_after_generate": True}], ["a", "fixed", "", 2], "a"),
        (["COMBO", {"remote": {"route": "/x"}}], ["r", False, 2], "r"),
        (["COMBO", {"options": ["a"], "multi_select": {"chip": True}}], [["a"], 2], {"__value__": ["a"]}),
        ([["a", "b"], {}], ["b", 2], "b"),
        ([["a", "b"]], [None, 2], "a"),
        (["COMBO", {"options": ["a"]}], ["not in the list", 2], "not in the list"),
    ],
)
def test_a_combo_takes_as_many_places_as_it_has_widgets(combo: Any, values: Any, expected: Any) -> None:
    assert inputs_of(definition({"c": combo, "n": N}), values) == {"c": expected, "n": 2}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (["INT", {}], 0),
        (["INT", {"default": None}], 0),
        (["BOOLEAN", {}], False),
        (["STRING", {}], ""),
        ([["a", "b"]], "a"),
        ([["a", "b"], {"default": "b"}], "b"),
        (["COMBO", {"remote": {"route": "/x"}}], "Loading..."),
        (["COMBO", {"options": ["a"], "multi_select": {}}], {"__value__": []}),
        (["RANGE", {}], {"min": 0, "max": 1}),
        (["BOUNDING_BOX", {}], {"x": 0, "y": 0, "width": 512, "height": 512}),
    ],
)
def test_a_widget_without_a_saved_value_has_a_default(declared: Any, expected: Any) -> None:
    assert inputs_of(definition({"w": declared}), None) == {"w": expected}


@pytest.mark.parametrize("declared", [["PAINTER", {}], [[]], ["COMBO", {"options": []}]])
def test_what_has_no_default_sends_nothing(declared: Any) -> None:
    assert inputs_of(definition({"w": declared, "n": N}), None) == {"n": 1}


def test_an_upload_button_comes_after_the_optional_inputs() -> None:
    described = definition({"image": [["a.png"], {"image_upload": True}]}, {"n": N})
    assert inputs_of(described, ["a.png", 4, "image"]) == {"image": "a.png", "n": 4}
    del described["input_order"]
    assert inputs_of(described, ["a.png", "image", 4]) == {"image": "a.png", "n": 4}


def test_an_optional_combo_has_no_upload_button() -> None:
    described = definition({}, {"image": [["a.png"], {"image_upload": True}], "n": N})
    del described["input_order"]
    assert inputs_of(described, ["a.png", 4]) == {"image": "a.png", "n": 4}


@pytest.mark.parametrize(("kind", "rests"), [("IMAGEUPLOAD", "image"), ("AUDIOUPLOAD", "")])
def test_an_upload_button_that_a_pack_declares_is_not_sent(kind: str, rests: str) -> None:
    described = definition({"image": [["a.png"], {"image_upload": True}], "upload": [kind], "n": N})
    assert inputs_of(described, ["a.png", rests, 4]) == {"image": "a.png", "n": 4}


def test_a_camera_button_takes_a_place_and_is_not_sent() -> None:
    described = definition({"image": ["WEBCAM", {}], "n": N})
    assert inputs_of(described, ["w", 4, "capture"]) == {"image": "w", "n": 4}


def test_three_buttons_stand_before_a_scene_that_follows_its_model_file() -> None:
    with_file = definition({"model_file": [["a.glb"]], "image": ["LOAD_3D", {}], "n": N})
    inputs = inputs_of(with_file, ["a.glb", "upload3dmodel", "uploadExtraResources", "clear", "", 5])
    assert (inputs["model_file"], inputs["image"], inputs["n"]) == ("a.glb", "", 5)
    file_later = definition({"image": ["LOAD_3D", {}], "model_file": [["a.glb"]], "n": N})
    assert inputs_of(file_later, ["", "a.glb", 5]) == {"image": "", "model_file": "a.glb", "n": 5}


def test_rows_of_a_group_are_bounded() -> None:
    template = {"required": {"k": ["INT", {}]}, "min": 0, "max": 3}
    described = definition({"rows": ["COMFY_DYNAMICGROUP_V3", {"template": template}], "n": N})
    assert inputs_of(described, [2, 7, 8, 9]) == {"rows.0.k": 7, "rows.1.k": 8, "n": 9}
    assert inputs_of(described, [10**9])["rows.2.k"] == 0


def test_choices_nest_and_take_their_values_as_they_open() -> None:
    inner = [{"key": "p", "inputs": {"required": {"q": N}}}, {"key": "r", "inputs": {}}]
    outer = [
        {"key": "a", "inputs": {"required": {"sub": ["COMFY_DYNAMICCOMBO_V3", {"options": inner}], "m": N}}},
        {"key": "b", "inputs": {"optional": {"z": ["FLOAT", {"default": 0.5}]}}},
    ]
    described = definition({"mode": ["COMFY_DYNAMICCOMBO_V3", {"options": outer}], "n": N})
    assert inputs_of(described, ["a", "p", 3, 4, 5]) == {
        "mode": "a",
        "mode.sub": "p",
        "mode.sub.q": 3,
        "mode.m": 4,
        "n": 5,
    }
    assert inputs_of(described, ["a", "r", 4, 5])["mode.m"] == 4
    assert inputs_of(described, ["b", 0.25, 5]) == {"mode": "b", "mode.z": 0.25, "n": 5}
    assert inputs_of(described, None)["mode.sub.q"] == 1


def test_rows_of_widgets_follow_names_and_bounds() -> None:
    def grown(**more: Any) -> Any:
        template = {"input": {"required": {"v": ["INT", {"default": 3}]}}, **more}
        return definition({"rows": ["COMFY_AUTOGROW_V3", {"template": template}], "n": N})

    assert inputs_of(grown(names=["x", "y", "z"], min=1), [5, 6, 7]) == {"rows.x": 5, "rows.y": 6, "n": 7}
    assert inputs_of(grown(prefix="v", min=2, max=2), [5, 6, 7]) == {"rows.v0": 5, "rows.v1": 6, "n": 7}


@pytest.mark.parametrize(
    ("values", "index", "options"),
    [
        (["two", 0, "one", "two", ""], 1, ["one", "two", ""]),
        (["two", 0, "one", "two"], 1, ["one", "two", ""]),
        (["gone", 5, "one", ""], -1, ["one", ""]),
        (["one", 0, "one", "", "lost"], 0, ["one", ""]),
    ],
)
def test_a_custom_combo_counts_its_choice_among_its_rows(values: Any, index: int, options: Any) -> None:
    inputs = convert(graph([node(1, "CustomCombo", values=values)]), DEFINITIONS, strict=True).prompt["1"][
        "inputs"
    ]
    assert inputs["index"] == index
    assert [inputs[name] for name in sorted(inputs) if name.startswith("option")] == options


@pytest.mark.parametrize("strict", [True, False])
def test_a_promoted_choice_is_counted_and_a_linked_one_is_not(strict: bool) -> None:
    combo = node(11, "CustomCombo", "choice=COMBO", ["one", 0, "one", "two", ""])
    box = subgraph("Box", [combo], ("in", 0, 11, "choice"), inputs="choice")
    host = node(2, "Box", "choice=COMBO", ["two"])
    promoted = with_subgraphs(graph([host]), box)
    assert convert(promoted, DEFINITIONS, strict=strict).prompt["2:11"]["inputs"]["index"] == 1
    linked = with_subgraphs(graph([node(1, "T_Text"), host], (1, 0, 2, "choice")), box)
    assert convert(linked, DEFINITIONS, strict=strict).prompt["2:11"]["inputs"]["index"] == 0


def test_forced_inputs_give_back_the_places_of_their_old_values() -> None:
    forced = {"f": ["INT", {"forceInput": True}], "seed": ["INT", {"control_after_generate": True}], "n": N}
    assert inputs_of(definition(forced), [9, 5, "fixed", 2]) == {"seed": 5, "n": 2}
    assert inputs_of(definition(forced), [5, "fixed", 2]) == {"seed": 5, "n": 2}
    optional = definition({"n": N}, {"o": ["INT", {"defaultInput": True}], "p": N})
    assert inputs_of(optional, [1, 2, 3]) == {"n": 1, "p": 3}
    required = definition({"n": ["INT", {"defaultInput": True}]})
    assert inputs_of(required, [4]) == {"n": 4}


@pytest.mark.parametrize("strict", [True, False])
def test_an_object_of_values_counts_by_its_order_or_by_names(strict: bool) -> None:
    described = definition({"a": N, "b": N})
    assert inputs_of(described, {"a": 5, "b": 6}, strict=strict) == {"a": 5, "b": 6}
    assert inputs_of(described, {"b": 6, "a": 5, "preview": {}}, strict=strict) == {"a": 5, "b": 6}
    turned = {"a": 6, "b": 5} if strict else {"a": 5, "b": 6}
    assert inputs_of(described, {"b": 6, "a": 5}, strict=strict) == turned


def test_an_object_of_values_names_the_inputs_of_a_choice() -> None:
    options = [{"key": "a", "inputs": {}}, {"key": "b", "inputs": {"required": {"y": N}}}]
    described = definition({"mode": ["COMFY_DYNAMICCOMBO_V3", {"options": options}], "n": N})
    values = {"mode": "b", "mode.y": 8, "n": 9, "surplus": 1}
    assert inputs_of(described, values) == {"mode": "b", "mode.y": 8, "n": 9}


@pytest.mark.parametrize("value", ["512", 64.7, True, None, {"a": 1}])
def test_values_are_sent_as_they_are_saved(value: Any) -> None:
    assert inputs_of(definition({"n": N}), [value]) == {"n": value}


def test_old_names_of_samplers_lose_their_prefix() -> None:
    described = definition({"sampler_name": [["euler"]]})
    workflow = graph([node(1, "KSampler", values=["sample_euler"]), node(2, "X", values=["sample_euler"])])
    prompt = convert(workflow, {"KSampler": described, "X": described}, strict=True).prompt
    assert [entry["inputs"]["sampler_name"] for entry in prompt.values()] == ["euler", "sample_euler"]


def test_hidden_inputs_are_not_sent() -> None:
    described = {"input": {"required": {"n": N}, "hidden": {"prompt": "PROMPT"}}, "output": []}
    assert inputs_of(described, [3, 4]) == {"n": 3}


def test_braces_choose_and_comments_go_only_where_the_widget_says_so() -> None:
    described = definition({"t": ["STRING", {"dynamicPrompts": True}], "p": ["STRING", {}]})
    text = "a {b|b} // gone\n/* gone\ntoo */\\{c\\|d\\} {{e|e}|{e}} {"
    inputs = inputs_of(described, [text, text])
    assert inputs == {"t": "a b \n{c|d} e ", "p": text}


def test_every_choice_of_braces_is_drawn() -> None:
    described = {"X": definition({"t": ["STRING", {"dynamicPrompts": True}]})}
    workflow = graph([node(1, "X", values=["{a|b|{c|d}}"])])
    drawn = {
        convert(workflow, described, rng=random.Random(seed)).prompt["1"]["inputs"]["t"] for seed in range(50)
    }
    assert drawn == {"a", "b", "c", "d"}


def test_file_names_are_filled_from_other_widgets() -> None:
    save = definition({"filename_prefix": ["STRING", {}]})
    source = definition({"n": ["INT", {}], "f": ["FLOAT", {}], "t": ["STRING", {}], "b": ["BOOLEAN", {}]})
    prefix = "%Source.n%-%By title.f%-%Source.t%-%Source.b%-%width%-%None.n%-%date:yyyy-MM-dd hh:mm:ss%"
    workflow = graph(
        [
            node(1, "Save", values=[prefix]),
            node(2, "Any", values=[1, 1.5, "other", False], title="Source"),
            node(3, "Any", values=[7, 8.0, "a/b:c", True], properties={"Node name for S&R": "Source"}),
            node(4, "Any", values=[0, 8.0, "", True], title="By title"),
        ]
    )
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    prompt = convert(workflow, {"Save": save, "Any": source}, strict=True, now=now).prompt
    assert prompt["1"]["inputs"]["filename_prefix"] == "7-8-a_b_c-true-%width%-%None.n%-2026-03-04 05:06:07"


def test_a_primitive_fills_in_widgets_only_when_it_is_told_to() -> None:
    text = definition({"t": ["STRING", {}]})
    for told in (True, False):
        properties = {"Run widget replace on values": told}
        workflow = graph(
            [
                node(1, "PrimitiveNode", values=["seed %Other.n%"], properties=properties),
                node(2, "Text", "t=STRING", ["old"]),
                node(3, "Other", values=[9]),
            ],
            (1, 0, 2, "t"),
        )
        prompt = convert(workflow, {"Text": text, "Other": definition({"n": N})}, strict=True).prompt
        assert prompt["2"]["inputs"]["t"] == ("seed 9" if told else "seed %Other.n%")


@pytest.mark.parametrize("strict", [True, False])
def test_a_branch_selector_lists_the_connected_branches_by_their_labels(strict: bool) -> None:
    template = {"input": {"optional": {"branch": ["COMFY_MATCHTYPE_V3", {}]}}, "prefix": "branch", "min": 1}
    described = definition(
        {
            "autogrow": ["COMFY_AUTOGROW_V3", {"template": template}],
            "branch": ["STRING", {"widgetType": "COMFY_BRANCH_SELECTOR"}],
            "names": ["ARRAY", {"widgetType": "COMFY_BRANCH_INPUT_NAMES", "socketless": True}],
        },
        {"other": ["IMAGE", {}]},
    )
    branches = "autogrow.branch0:IMAGE autogrow.branch1:IMAGE autogrow.branch2:IMAGE other:IMAGE"
    switch = node(2, "Switch", branches, ["H3", ["stale"]])
    switch["inputs"][0]["label"] = "H3"
    links = [(1, 0, 2, name) for name in ("autogrow.branch0", "autogrow.branch2", "other")]
    workflow = graph([node(1, "T_Src"), switch], *links)
    inputs = convert(workflow, DEFINITIONS | {"Switch": described}, strict=strict).prompt["2"]["inputs"]
    assert inputs["branch"] == "H3"
    assert inputs["names"] == {"__value__": ["H3", "branch2"]}
    assert inputs["autogrow.branch2"] == ["1", 0]


def test_values_that_a_browser_makes_are_warned_of() -> None:
    described = {"X": definition({"image": ["LOAD_3D", {}], "w": ["WEBCAM", {}]})}
    report = convert(graph([node(1, "X", values=["", ""])]), described).report
    assert [(warning.rule, warning.input) for warning in report.warnings] == [
        ("browser", "image"),
        ("browser", "w"),
    ]
