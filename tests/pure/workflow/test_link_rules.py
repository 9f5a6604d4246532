"""Where links begin and end: stale slots, reroutes, muted and bypassed nodes, primitives, links of packs."""

from typing import Any

import pytest

from app.workflow.convert import convert
from tests.pure.workflow.drawn import DEFINITIONS, graph, node

BOTH = pytest.mark.parametrize("strict", [True, False])


def described(**inputs: str) -> dict[str, Any]:
    """A node with these inputs; types that have widgets get one."""
    return {"input": {"required": {name: [kind, {}] for name, kind in inputs.items()}}, "output": ["IMAGE"]}


def inputs_of(workflow: Any, node_id: str, strict: bool, **kinds: Any) -> dict[str, Any]:
    prompt = convert(workflow, DEFINITIONS | kinds, strict=strict).prompt
    inputs: dict[str, Any] = prompt[node_id]["inputs"]
    return inputs


@BOTH
def test_a_link_without_a_slot_counts_sockets_before_widgets(strict: bool) -> None:
    kind = described(w="INT", a="IMAGE", v="INT", b="IMAGE")
    workflow = graph([node(1, "T_Src"), node(2, "X", values=[5, 6])])
    workflow["links"] = [[1, 1, 0, 2, 1, "IMAGE"], [2, 1, 0, 2, 2, "INT"]]
    del workflow["nodes"][1]["inputs"]
    assert inputs_of(workflow, "2", strict, X=kind) == {"w": ["1", 0], "v": 6, "b": ["1", 0]}


@BOTH
def test_a_claim_by_id_goes_before_a_place_and_before_an_earlier_link(strict: bool) -> None:
    first, second = node(1, "T_Src"), node(2, "T_Src")
    sink = node(3, "T_Two", "b:MASK a:IMAGE")
    sink["inputs"][1]["link"] = 2
    workflow = graph([first, second, sink])
    workflow["links"] = [[1, 1, 0, 3, 1, "IMAGE"], [2, 2, 0, 3, 0, "IMAGE"]]
    assert inputs_of(workflow, "3", strict) == {"a": ["2", 0]}


@BOTH
def test_an_id_at_an_input_is_no_link_where_the_list_lacks_it(strict: bool) -> None:
    sink = node(3, "T_Sink", "x:*")
    sink["inputs"][0]["link"] = 9
    assert inputs_of(graph([sink]), "3", strict) == {}


@BOTH
@pytest.mark.parametrize("form", [list, dict])
def test_links_are_read_in_both_forms(form: type, strict: bool) -> None:
    workflow = graph([node("a", "T_Src"), node("b", "T_Sink", "x:*")], ("a", 0, "b", "x"))
    if form is dict:
        keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot", "type")
        workflow["links"] = [dict(zip(keys, link, strict=True)) for link in workflow["links"]]
        workflow |= {"version": 1, "state": {"lastNodeId": 2}}
    assert inputs_of(workflow, "b", strict) == {"x": ["a", 0]}


@BOTH
def test_a_slot_of_a_widget_that_is_gone_loses_its_link(strict: bool) -> None:
    sink = node(2, "T_Int", "value=INT old=INT extra:INT", [5])
    workflow = graph([node(1, "T_Int"), sink], (1, 0, 2, "old"), (1, 0, 2, "extra"))
    conversion = convert(workflow, DEFINITIONS, strict=strict)
    assert conversion.prompt["2"]["inputs"] == {"value": 5, "extra": ["1", 0]}
    assert [(warning.rule, warning.input) for warning in conversion.report.warnings] == [("slot", "old")]


@BOTH
def test_a_link_overrides_the_value_of_its_widget(strict: bool) -> None:
    workflow = graph([node(1, "T_Int"), node(2, "T_Int", "value=INT", [5])], (1, 0, 2, "value"))
    assert inputs_of(workflow, "2", strict) == {"value": ["1", 0]}


@BOTH
def test_reroutes_lead_through_bypassed_nodes_to_the_source(strict: bool) -> None:
    nodes = [
        node(1, "T_Src"),
        node(2, "Reroute", ":*", mode=2),
        node(3, "T_Union", "a:IMAGE,MASK", mode=4),
        node(4, "Reroute", ":*", mode=4),
        node(5, "T_Union", "a:IMAGE,MASK", mode=4),
        node(6, "T_Sink", "x:*"),
    ]
    for entry in (nodes[1], nodes[3]):
        entry["inputs"] = [{"name": "", "type": "*", "link": None}]
    workflow = graph(nodes, (1, 0, 2, ""), (2, 0, 3, "a"), (3, 0, 4, ""), (4, 0, 5, "a"), (5, 0, 6, "x"))
    assert inputs_of(workflow, "6", strict) == {"x": ["1", 0]}


@BOTH
def test_a_thousand_reroutes_are_followed(strict: bool) -> None:
    reroutes = [
        {"id": i, "type": "Reroute", "inputs": [{"name": "", "type": "*", "link": None}]}
        for i in range(2, 1502)
    ]
    chain = [(i, 0, i + 1, "") for i in range(1, 1501)]
    nodes = [node(1, "T_Src"), *reroutes, node(1502, "T_Sink", "x:*")]
    workflow = graph(nodes, *chain, (1501, 0, 1502, "x"))
    assert inputs_of(workflow, "1502", strict) == {"x": ["1", 0]}


@BOTH
def test_behind_a_muted_node_a_socket_is_left_out_and_a_widget_keeps_its_value(strict: bool) -> None:
    nodes = [
        node(1, "T_Int", mode=2),
        node(2, "T_Int", "value=INT", [5]),
        node(3, "T_Sink", "x:*"),
        node(4, "T_Int", "value=INT", [6], mode=4),
        node(5, "T_Int", "value=INT", [7]),
    ]
    links = [(1, 0, 2, "value"), (1, 0, 3, "x"), (1, 0, 4, "value"), (4, 0, 5, "value")]
    prompt = convert(graph(nodes, *links), DEFINITIONS, strict=strict).prompt
    assert {key: entry["inputs"] for key, entry in prompt.items()} == {
        "2": {"value": 5},
        "3": {},
        "5": {"value": 7},
    }


@BOTH
@pytest.mark.parametrize("mode", [1, 3])
def test_other_modes_run_as_usual(mode: int, strict: bool) -> None:
    workflow = graph([node(1, "T_Src", mode=mode), node(2, "T_Sink", "x:*", mode=mode)], (1, 0, 2, "x"))
    assert inputs_of(workflow, "2", strict) == {"x": ["1", 0]}


def bypassed(kinds: dict[str, str], outputs: list[str], output: int, wanted: str, strict: bool) -> str | None:
    """Which input of a bypassed node an output stands for; each is fed by a source of its own."""
    names = list(kinds)
    sources = [node(i, "T_Src") for i in range(10, 10 + len(names))]
    middle = node(2, "Middle", " ".join(f"{name}:{kind}" for name, kind in kinds.items()), mode=4)
    sink = node(3, "Sink", f"x:{wanted}")
    links = [(10 + i, 0, 2, name) for i, name in enumerate(names)]
    workflow = graph([*sources, middle, sink], *links, (2, output, 3, "x"))
    kind = {"input": {"required": {n: [k, {}] for n, k in kinds.items()}}, "output": outputs}
    found = inputs_of(workflow, "3", strict, Middle=kind, Sink=described(x=wanted)).get("x")
    return None if found is None else names[int(found[0]) - 10]


@BOTH
@pytest.mark.parametrize(
    ("kinds", "outputs", "output", "wanted", "chosen"),
    [
        ({"a": "MODEL", "b": "CLIP"}, ["MODEL", "CLIP"], 1, "CLIP", "b"),
        ({"a": "MODEL", "b": "CLIP"}, ["CLIP", "MODEL"], 0, "CLIP", "b"),
        ({"a": "MODEL", "b": "CLIP"}, ["VAE"], 0, "VAE", None),
        ({"a": "MODEL", "b": "CLIP"}, ["MODEL", "CLIP", "VAE"], 2, "*", "a"),
        ({"a": "MODEL", "b": "CLIP"}, ["MODEL", "CLIP"], 1, "*", "b"),
        ({"a": "MASK", "b": "*", "c": "IMAGE"}, ["IMAGE"], 0, "IMAGE", "c"),
        ({"a": "MASK", "b": "*"}, ["IMAGE"], 0, "IMAGE", "b"),
        ({"a": "image"}, ["IMAGE"], 0, "IMAGE", "a"),
        ({"a": "LATENT", "b": "IMAGE,MASK"}, ["MASK"], 0, "MASK", "b"),
        ({"a": "IMAGE,MASK"}, ["IMAGE"], 0, "LATENT,IMAGE", "a"),
    ],
)
def test_a_bypassed_node_passes_on_the_input_that_fits(
    kinds: Any, outputs: Any, output: int, wanted: str, chosen: str | None, strict: bool
) -> None:
    assert bypassed(kinds, outputs, output, wanted, strict) == chosen


@BOTH
def test_a_bypassed_node_counts_sockets_before_widgets(strict: bool) -> None:
    middle = node(2, "Middle", "w=INT a:IMAGE", [1], mode=4)
    workflow = graph(
        [node(1, "T_Src"), node(9, "T_Int"), middle, node(3, "T_Sink", "x:*")],
        (9, 0, 2, "w"),
        (1, 0, 2, "a"),
        (2, 0, 3, "x"),
    )
    assert inputs_of(workflow, "3", strict, Middle=described(w="INT", a="IMAGE")) == {"x": ["1", 0]}


@BOTH
def test_a_bypassed_node_passes_on_rows_that_grow(strict: bool) -> None:
    middle = node(2, "T_Auto", "images.image0:IMAGE images.image1:IMAGE tail=INT", [1], mode=4)
    workflow = graph(
        [node(1, "T_Src"), node(4, "T_Src"), middle, node(3, "T_Sink", "x:*")],
        (1, 0, 2, "images.image0"),
        (4, 0, 2, "images.image1"),
        (2, 0, 3, "x"),
    )
    assert inputs_of(workflow, "3", strict) == {"x": ["1", 0]}


@BOTH
def test_a_bypassed_node_of_matching_types_has_the_types_of_the_file(strict: bool) -> None:
    middle = node(2, "T_Match", "a:IMAGE sw=BOOLEAN", [True], mode=4, outputs=[{"type": "IMAGE"}])
    sink = node(3, "T_Union", "a:IMAGE,MASK")
    workflow = graph([node(1, "T_Src"), middle, sink], (1, 0, 2, "a"), (2, 0, 3, "a"))
    assert inputs_of(workflow, "3", strict) == {"a": ["1", 0]}


@BOTH
def test_a_bypassed_unknown_node_passes_on_by_its_saved_slots(strict: bool) -> None:
    middle = node(2, "Nobody", "m:MODEL i:IMAGE", mode=4, outputs=[{"type": "IMAGE"}])
    workflow = graph(
        [node(1, "T_Src"), middle, node(3, "T_Union", "a:IMAGE,MASK")], (1, 0, 2, "i"), (2, 0, 3, "a")
    )
    conversion = convert(workflow, DEFINITIONS, strict=strict)
    assert conversion.prompt["3"]["inputs"] == {"a": ["1", 0]}
    assert not conversion.report.missing_types


@BOTH
def test_a_primitive_feeds_each_of_its_widgets(strict: bool) -> None:
    stepped = {"input": {"required": {"n": ["INT", {"step": 8, "min": 4}]}}, "output": []}
    rounds = {"input": {"required": {"f": ["FLOAT", {"round": 0.5}]}}, "output": []}
    nodes = [
        node(1, "PrimitiveNode", values=[777, "randomize"], mode=4),
        node(2, "T_Int", "value=INT", [1]),
        node(3, "Step", "n=INT", [1]),
        node(4, "PrimitiveNode", values=[0.75, "fixed"], mode=2),
        node(5, "Round", "f=FLOAT", [1]),
        node(6, "PrimitiveNode"),
        node(7, "T_Int", "value=INT", [9]),
        node(8, "PrimitiveNode", values=[2**62 + 1, "fixed"]),
        node(9, "T_Int", "value=INT", [9]),
    ]
    links = [(1, 0, 2, "value"), (1, 0, 3, "n"), (4, 0, 5, "f"), (6, 0, 7, "value"), (8, 0, 9, "value")]
    prompt = convert(
        graph(nodes, *links), DEFINITIONS | {"Step": stepped, "Round": rounds}, strict=strict
    ).prompt
    assert {key: entry["inputs"] for key, entry in prompt.items()} == {
        "2": {"value": 777},
        "3": {"n": 780},
        "5": {"f": 1.0},
        "7": {"value": 9},
        "9": {"value": 2**62 + 1},
    }


def test_the_nodes_that_packs_draw_in_the_editor_are_followed() -> None:
    nodes = [
        node(1, "T_Src"),
        node(2, "SetNode", "IMAGE:IMAGE", ["pic"]),
        node(3, "GetNode", values=["pic"]),
        node(4, "Reroute (rgthree)", "x:*"),
        node(5, "T_Sink", "x:*"),
        node(6, "Fast Groups Muter (rgthree)"),
    ]
    links = [(1, 0, 2, "IMAGE"), (3, 0, 4, "x"), (4, 0, 5, "x")]
    conversion = convert(graph(nodes, *links), DEFINITIONS)
    assert {key: entry["inputs"] for key, entry in conversion.prompt.items()} == {
        "1": {"n": 1},
        "5": {"x": ["1", 0]},
    }
    assert not conversion.report.missing_types


def test_a_pack_that_defines_such_a_node_runs_it() -> None:
    workflow = graph([node(1, "T_Src"), node(2, "SetNode", "x:IMAGE")], (1, 0, 2, "x"))
    assert set(convert(workflow, DEFINITIONS | {"SetNode": described(x="IMAGE")}).prompt) == {"1", "2"}


def test_links_to_everywhere_fill_what_is_left_open() -> None:
    nodes = [
        node(1, "T_Src"),
        node(2, "T_Src"),
        node(3, "T_Any", "a:* b:IMAGE"),
        node(4, "Anything Everywhere"),
    ]
    everywhere = [
        {"downstream": 3, "downstream_slot": slot, "upstream": "2", "upstream_slot": 0} for slot in (0, 1)
    ]
    workflow = graph(nodes, (1, 0, 3, "a"), extra={"ue_links": everywhere})
    assert inputs_of(workflow, "3", False) == {"a": ["1", 0], "b": ["2", 0]}
    assert inputs_of(workflow, "3", True) == {"a": ["1", 0]}


def test_a_link_into_a_choice_that_is_unknown_here_is_kept_by_its_name() -> None:
    sink = node(2, "T_DynCombo", "mode=COMBO mode.picture:IMAGE mode.k=INT", ["newer", 4, 9])
    workflow = graph([node(1, "T_Src"), sink], (1, 0, 2, "mode.picture"), (1, 0, 2, "mode.k"))
    inputs = inputs_of(workflow, "2", False)
    assert inputs["mode.picture"] == ["1", 0]
    assert inputs["mode.k"] == ["1", 0]
    assert inputs["mode"] == "newer"


@BOTH
@pytest.mark.parametrize("kind", ["Note", "MarkdownNote", "PrimitiveNode", "Reroute"])
def test_nodes_of_the_editor_are_never_sent(kind: str, strict: bool) -> None:
    assert convert(graph([node(1, kind, values=["text"])]), DEFINITIONS, strict=strict).prompt == {}
