"""Group nodes of older files: unpacked alike in both modes."""

from typing import Any

import pytest

from app.workflow.convert import convert
from tests.pure.workflow.drawn import DEFINITIONS, graph, node

SAMPLER = ("KSampler", "model:MODEL positive:CONDITIONING negative:CONDITIONING latent_image:LATENT")
SAVED = [7, "fixed", 3, 2.5, "euler", "normal", 0.5]


def grouped(kind: str, values: Any, inner: list[dict[str, Any]], links: list[Any], **more: Any) -> Any:
    source, sink = node(1, "T_Src", values=[1]), node(3, "T_Sink", "x:*")
    host = node(2, kind, more.pop("inputs", "a:IMAGE"), values)
    for index, entry in enumerate(inner):
        entry["index"] = index
    groups = {"Group": {"nodes": inner, "links": links, **more}}
    return graph(
        [source, host, sink],
        (1, 0, 2, host["inputs"][0]["name"]),
        (2, 0, 3, "x"),
        extra={"groupNodes": groups},
    )


def by_type(prompt: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    return {entry["class_type"]: (key, entry["inputs"]) for key, entry in prompt.items()}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", ["workflow>Group", "workflow/Group"])
def test_a_group_becomes_its_nodes(kind: str, strict: bool) -> None:
    inner = [node(-1, "T_Union", "a:IMAGE"), node(-1, "T_DynCombo", values=["a", 1, 9]), node(-1, "T_Int")]
    workflow = grouped(kind, ["a", 5, 6, 42], inner, [])
    conversion = convert(workflow, DEFINITIONS, strict=strict)
    found = by_type(conversion.prompt)
    assert found["T_Union"][1] == {"a": ["1", 0]}
    assert found["T_DynCombo"][1] == {"mode": "a", "mode.x": 5, "after": 6}
    assert found["T_Int"][1] == {"value": 42}
    assert found["T_Sink"][1] == {"x": [found["T_Union"][0], 0]}
    assert not conversion.report.missing_types
    assert all(key.startswith("2:") for kind, (key, _) in found.items() if kind not in ("T_Src", "T_Sink"))


def test_links_inside_a_group_stay_and_hide_what_they_connect() -> None:
    inner = [node(-1, "T_Union", "a:IMAGE"), node(-1, "T_Two", "a:IMAGE b:MASK")]
    workflow = grouped("workflow>Group", [], inner, [[0, 0, 1, 0, 5, "IMAGE"]])
    found = by_type(convert(workflow, DEFINITIONS).prompt)
    assert found["T_Two"][1] == {"a": [found["T_Union"][0], 0]}
    assert found["T_Union"][1] == {"a": ["1", 0]}
    # of the outputs the unconnected ones are left: those of the second node
    assert found["T_Sink"][1] == {"x": [found["T_Two"][0], 0]}


def test_an_output_that_is_used_inside_and_outside_is_shown_as_well() -> None:
    inner = [node(-1, "T_Union", "a:IMAGE"), node(-1, "T_Two", "a:IMAGE b:MASK")]
    workflow = grouped("workflow>Group", [], inner, [[0, 0, 1, 0, 5, "IMAGE"]], external=[[0, 0, "IMAGE"]])
    found = by_type(convert(workflow, DEFINITIONS).prompt)
    assert found["T_Sink"][1] == {"x": [found["T_Union"][0], 0]}


def test_values_of_seeds_and_their_controls_keep_their_places() -> None:
    inner = [node(-1, *SAMPLER), node(-1, "T_Int")]
    workflow = grouped("workflow>Group", [*SAVED, 42], inner, [], inputs="model:MODEL")
    found = by_type(convert(workflow, DEFINITIONS, strict=True).prompt)
    sampler = found["KSampler"][1]
    assert (sampler["seed"], sampler["steps"], sampler["cfg"], sampler["denoise"]) == (7, 3, 2.5, 0.5)
    assert sampler["model"] == ["1", 0]
    assert found["T_Int"][1] == {"value": 42}


def test_equal_names_have_the_title_in_front() -> None:
    inner = [node(-1, "T_Union", "a:IMAGE"), node(-1, "T_Union", "a:IMAGE", title="Second")]
    workflow = grouped("workflow>Group", [], inner, [], inputs="Second")
    workflow["nodes"][1]["inputs"][0]["name"] = "Second a"
    prompt = convert(workflow, DEFINITIONS).prompt
    titles = {entry["_meta"]["title"]: entry["inputs"] for entry in prompt.values()}
    assert titles["Second"] == {"a": ["1", 0]}


def test_a_widget_that_was_turned_into_an_input_is_linked_by_its_name() -> None:
    inner = [node(-1, "T_Union", "a:IMAGE"), node(-1, "T_Int", "value=INT", [8])]
    workflow = grouped("workflow>Group", [8], inner, [], inputs="value=INT")
    found = by_type(convert(workflow, DEFINITIONS).prompt)
    assert found["T_Int"][1] == {"value": ["1", 0]}


def test_two_instances_have_their_own_values() -> None:
    nodes = [node(1, "workflow>G", values=[1]), node(2, "workflow>G", values=[2]), node(3, "workflow>G")]
    group = {"nodes": [node(-1, "T_Int", values=[9])], "links": [], "external": []}
    prompt = convert(graph(nodes, extra={"groupNodes": {"G": group}}), DEFINITIONS, strict=True).prompt
    assert sorted(entry["inputs"]["value"] for entry in prompt.values()) == [1, 2, 9]


def test_groups_nest() -> None:
    groups = {
        "Outer": {"nodes": [node(-1, "workflow>Inner"), node(-1, "T_Int")], "links": []},
        "Inner": {"nodes": [node(-1, "T_Src"), node(-1, "T_Mask")], "links": []},
    }
    host = node(1, "workflow>Outer", values=[5, 6, 7])
    found = by_type(convert(graph([host], extra={"groupNodes": groups}), DEFINITIONS).prompt)
    assert (found["T_Src"][1], found["T_Mask"][1]) == ({"n": 5}, {"n": 6})
    assert found["T_Int"][1] == {"value": 7}


def test_a_group_in_itself_is_refused() -> None:
    groups = {"G": {"nodes": [node(-1, "workflow>G")], "links": []}}
    with pytest.raises(ValueError, match="contains itself"):
        convert(graph([node(1, "workflow>G")], extra={"groupNodes": groups}), DEFINITIONS)


@pytest.mark.parametrize("groups", [None, [], {"G": None}, {"G": {"nodes": 3}}, {"G": {"nodes": [None]}}])
def test_a_damaged_group_raises_nothing(groups: Any) -> None:
    convert(graph([node(1, "workflow>G", values=[1])], extra={"groupNodes": groups}), DEFINITIONS)
