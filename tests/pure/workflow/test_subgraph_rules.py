"""Subgraphs: ids, inputs by name, promoted values, proxies, muting, and what a file may leave out."""

from typing import Any

import pytest

from app.workflow.convert import convert
from tests.pure.workflow.drawn import DEFINITIONS, graph, node, subgraph, with_subgraphs

BOTH = pytest.mark.parametrize("strict", [True, False])


def inputs(workflow: Any, strict: bool, definitions: Any = DEFINITIONS) -> dict[str, dict[str, Any]]:
    prompt = convert(workflow, definitions, strict=strict).prompt
    return {key: entry["inputs"] for key, entry in prompt.items()}


def number_box(name: str = "Box") -> dict[str, Any]:
    """An integer and a picture pass through; the integer's widget is promoted as `num`."""
    return subgraph(
        name,
        [node(11, "T_Union", "a:IMAGE,MASK"), node(12, "T_Int", "value=INT", [42])],
        ("in", 0, 11, "a"),
        ("in", 1, 12, "value"),
        (11, 0, "out", "0"),
        (12, 0, "out", "1"),
        inputs="img num",
        outputs="out n",
    )


def nested(levels: int) -> list[dict[str, Any]]:
    """Boxes in boxes: each promotes what its inner one promotes."""
    found = [number_box("L1")]
    for level in range(2, levels + 1):
        inner = node(20 + level, f"L{level - 1}", "img:IMAGE num=INT")
        ends = [(20 + level, 0, "out", "0"), (20 + level, 1, "out", "1")]
        links = [("in", 0, 20 + level, "img"), ("in", 1, 20 + level, "num"), *ends]
        found.append(subgraph(f"L{level}", [inner], *links, inputs="img num", outputs="out n"))
    return found


@BOTH
def test_three_levels_carry_pictures_values_and_ids(strict: bool) -> None:
    host = node(2, "L3", "img:IMAGE num=INT", [99])
    workflow = graph(
        [node(1, "T_Src"), host, node(3, "T_Sink", "x:*"), node(4, "T_Int", "value=INT")],
        (1, 0, 2, "img"),
        (2, 0, 3, "x"),
        (2, 1, 4, "value"),
    )
    assert inputs(with_subgraphs(workflow, *nested(3)), strict) == {
        "1": {"n": 1},
        "3": {"x": ["2:23:22:11", 0]},
        "4": {"value": ["2:23:22:12", 0]},
        "2:23:22:11": {"a": ["1", 0]},
        "2:23:22:12": {"value": 99},
    }


@BOTH
def test_definitions_may_stand_inside_definitions(strict: bool) -> None:
    outer, inner = nested(2)[1], nested(2)[0]
    outer["definitions"] = {"subgraphs": [inner]}
    workflow = with_subgraphs(graph([node(2, "L2", values=[7])]), outer)
    assert inputs(workflow, strict)["2:22:12"] == {"value": 7}


@BOTH
def test_the_innermost_value_shows_where_no_host_saved_one(strict: bool) -> None:
    boxes = nested(3)
    assert inputs(with_subgraphs(graph([node(2, "L3")]), *boxes), strict)["2:23:22:12"] == {"value": 42}
    boxes[1]["nodes"][0]["widgets_values"] = [50]
    assert inputs(with_subgraphs(graph([node(2, "L3")]), *boxes), strict)["2:23:22:12"] == {"value": 50}
    boxes[2]["nodes"][0]["widgets_values"] = [60]
    assert inputs(with_subgraphs(graph([node(2, "L3")]), *boxes), strict)["2:23:22:12"] == {"value": 60}


@BOTH
def test_a_link_at_the_outermost_host_reaches_the_innermost_widget(strict: bool) -> None:
    host = node(2, "L3", "num=INT img:IMAGE", [99])
    workflow = graph([node(1, "T_Int"), host], (1, 0, 2, "num"))
    assert inputs(with_subgraphs(workflow, *nested(3)), strict)["2:23:22:12"] == {"value": ["1", 0]}


def test_behind_a_muted_source_the_promoted_value_counts() -> None:
    host = node(2, "L2", "img:IMAGE num=INT", [99])
    workflow = with_subgraphs(graph([node(1, "T_Int", mode=2), host], (1, 0, 2, "num")), *nested(2))
    assert inputs(workflow, strict=False)["2:22:12"] == {"value": 99}
    # the front end falls back to the inner widget
    assert inputs(workflow, strict=True)["2:22:12"] == {"value": 42}


@BOTH
def test_hosts_of_one_definition_have_values_of_their_own(strict: bool) -> None:
    workflow = graph([node(1, "Box", values=[5]), node(2, "Box", values=[]), node(3, "Box", values=[7])])
    found = inputs(with_subgraphs(workflow, number_box()), strict)
    assert [found[f"{host}:12"]["value"] for host in (1, 2, 3)] == [5, 42, 7]


@BOTH
def test_taken_ids_are_renumbered_in_order_and_links_follow(strict: bool) -> None:
    first = subgraph("A", [node(1, "T_Src"), node(5, "T_Sink", "x:*")], (1, 0, 5, "x"))
    second = subgraph("B", [node(5, "T_Src"), node(6, "T_Sink", "x:*")], (5, 0, 6, "x"))
    workflow = with_subgraphs(graph([node(1, "A"), node(2, "B")], last_node_id=50), first, second)
    conversion = convert(workflow, DEFINITIONS, strict=strict)
    assert {key: entry["inputs"] for key, entry in conversion.prompt.items()} == {
        "1:51": {"n": 1},
        "1:5": {"x": ["1:51", 0]},
        "2:52": {"n": 1},
        "2:6": {"x": ["2:52", 0]},
    }
    assert conversion.report.id_map == {"A": {"1": "51"}, "B": {"5": "52"}}


@BOTH
def test_of_equal_ids_in_one_definition_the_first_counts(strict: bool) -> None:
    box = subgraph("A", [node(5, "T_Src", values=[3]), node(5, "T_Mask")])
    assert inputs(with_subgraphs(graph([node(1, "A")]), box), strict) == {"1:5": {"n": 3}}


@BOTH
def test_muted_nodes_inside_a_subgraph_are_left_out(strict: bool) -> None:
    box = number_box()
    box["nodes"][0]["mode"] = 2
    box["nodes"][1]["mode"] = 4
    workflow = graph(
        [
            node(1, "T_Src"),
            node(2, "Box", "img:IMAGE num=INT", [5]),
            node(3, "T_Sink", "x:*"),
            node(4, "T_Int", "value=INT", [8]),
        ],
        (1, 0, 2, "img"),
        (2, 0, 3, "x"),
        (2, 1, 4, "value"),
    )
    found = inputs(with_subgraphs(workflow, box), strict)
    assert set(found) == {"1", "3", "4"}
    assert found["3"] == {}
    # through the bypassed integer and out of the box: its promoted value
    assert found["4"] == {"value": 5}


@BOTH
@pytest.mark.parametrize("mode", [2, 4])
def test_a_host_that_is_off_hides_what_is_inside(mode: int, strict: bool) -> None:
    workflow = graph(
        [node(1, "T_Src"), node(2, "L3", "img:IMAGE num=INT", [5], mode=mode), node(3, "T_Sink", "x:*")],
        (1, 0, 2, "img"),
        (2, 0, 3, "x"),
    )
    found = inputs(with_subgraphs(workflow, *nested(3)), strict)
    assert found == {"1": {"n": 1}, "3": {"x": ["1", 0]} if mode == 4 else {}}


@pytest.mark.parametrize("mode", [2, 4])
def test_a_nested_host_that_is_off_hides_too_but_not_in_the_front_end(mode: int) -> None:
    boxes = nested(2)
    boxes[1]["nodes"][0]["mode"] = mode
    workflow = with_subgraphs(graph([node(2, "L2", "img:IMAGE num=INT", [5])]), *boxes)
    assert inputs(workflow, strict=False) == {}
    assert inputs(workflow, strict=True) == {"2:22:11": {}, "2:22:12": {"value": 5}}


@BOTH
def test_reroutes_and_bypassed_nodes_at_the_walls_are_passed(strict: bool) -> None:
    reroute = {"id": 11, "type": "Reroute", "inputs": [{"name": "", "type": "*", "link": None}]}
    box = subgraph(
        "Box",
        [reroute, node(12, "T_Union", "a:IMAGE", mode=4)],
        ("in", 0, 11, ""),
        (11, 0, 12, "a"),
        (12, 0, "out", "0"),
        inputs="img",
        outputs="out",
    )
    host, sink = node(2, "Box", "img:IMAGE"), node(3, "T_Sink", "x:*")
    workflow = graph([node(1, "T_Src"), host, sink], (1, 0, 2, "img"), (2, 0, 3, "x"))
    assert inputs(with_subgraphs(workflow, box), strict) == {"1": {"n": 1}, "3": {"x": ["1", 0]}}


@BOTH
def test_a_primitive_inside_feeds_the_inside_of_each_host(strict: bool) -> None:
    nodes = [node(11, "PrimitiveNode", values=[777]), node(12, "T_Int", "value=INT", [1])]
    box = subgraph("Box", nodes, (11, 0, 12, "value"))
    proxied = node(2, "Box", values=[5], properties={"proxyWidgets": [["11", "value"]]})
    found = inputs(with_subgraphs(graph([node(1, "Box"), proxied]), box), strict)
    assert found == {"1:12": {"value": 777}, "2:12": {"value": 5}}


# --- proxies ----------------------------------------------------------------------------------------------


def proxied(proxies: list[Any], values: list[Any], *boxes: Any, kind: str, strict: bool) -> Any:
    host = node(2, kind, values=values, properties={"proxyWidgets": proxies})
    return inputs(with_subgraphs(graph([host]), *boxes), strict)


@BOTH
@pytest.mark.parametrize(
    "proxies",
    [[["-1", "num"]], [["12", "value"]], [["12", "12: value"]], [["$", "$$canvas"], ["-1", "num"]]],
)
def test_a_proxy_names_a_promoted_input_or_an_inner_widget(proxies: Any, strict: bool) -> None:
    values = [None] * (len(proxies) - 1) + [5]
    assert proxied(proxies, values, number_box(), kind="Box", strict=strict)["2:12"] == {"value": 5}


@BOTH
def test_proxies_of_one_node_do_not_undo_each_other(strict: bool) -> None:
    box = subgraph(
        "Box",
        [node(11, "T_Order", "a=INT b=INT c=INT", [1, 2, 3, 4])],
        ("in", 0, 11, "a"),
        ("in", 1, 11, "b"),
        inputs="first second",
    )
    proxies = [["-1", "first"], ["11", "b"], ["11", "c"]]
    found = proxied(proxies, [10, 20, 30], box, kind="Box", strict=strict)
    assert found["2:11"] == {"a": 10, "b": 20, "c": 30, "d": 4}


@BOTH
def test_the_values_of_proxies_that_are_missing_stay(strict: bool) -> None:
    found = proxied([["-1", "num"], ["11", "a"]], [], number_box(), kind="Box", strict=strict)
    assert found["2:12"] == {"value": 42}


@BOTH
@pytest.mark.parametrize("third", [[], ["12"]])
def test_a_proxy_reaches_into_a_nested_host(third: list[str], strict: bool) -> None:
    for levels, proxy in ((2, ["22", "num", *third]), (2, ["22", "value", *third]), (3, ["23", "num"])):
        kind = f"L{levels}"
        found = proxied([proxy], [5], *nested(levels), kind=kind, strict=strict)
        assert next(entry for key, entry in found.items() if key.endswith(":12")) == {"value": 5}


@BOTH
@pytest.mark.parametrize(("source", "first", "second"), [("12", 5, 2), ("13", 1, 5)])
def test_the_inner_id_tells_equal_names_apart(source: str, first: int, second: int, strict: bool) -> None:
    inner = subgraph(
        "Inner",
        [node(12, "T_Int", "value=INT", [1]), node(13, "T_Int", "value=INT", [2])],
        ("in", 0, 12, "value"),
        ("in", 1, 13, "value"),
        inputs="value value_1",
    )
    outer = subgraph("Outer", [node(20, "Inner", "value=INT value_1=INT")])
    found = proxied([["20", "value", source]], [5], inner, outer, kind="Outer", strict=strict)
    assert (found["2:20:12"]["value"], found["2:20:13"]["value"]) == (first, second)


@BOTH
def test_a_proxy_follows_an_id_that_was_renumbered(strict: bool) -> None:
    box = subgraph("Box", [node(2, "T_Int", values=[1])])
    found = proxied([["2", "value"]], [5], box, kind="Box", strict=strict)
    assert found == {"2:3": {"value": 5}}


@BOTH
def test_a_proxy_to_a_widget_that_nothing_promotes_is_set_deep_inside(strict: bool) -> None:
    innermost = subgraph("A", [node(11, "T_Int", values=[1])])
    middle = subgraph("B", [node(12, "A")])
    outer = subgraph("C", [node(13, "B")])
    found = proxied([["13", "value", "11"]], [5], innermost, middle, outer, kind="C", strict=strict)
    assert found == {"2:13:12:11": {"value": 5}}


# --- values ------------------------------------------------------------------------------------------------


@BOTH
def test_a_promoted_list_is_wrapped_and_a_null_in_a_host_is_sent_by_the_front_end_alone(strict: bool) -> None:
    box = subgraph("Box", [node(11, "T_Multi", "m=COMBO", [["a"], 5])], ("in", 0, 11, "m"), inputs="m")
    cases: list[tuple[Any, Any]] = [(["b", "c"], {"__value__": ["b", "c"]}), (None, {"__value__": ["a"]})]
    for saved, expected in cases:
        found = inputs(with_subgraphs(graph([node(2, "Box", values=[saved])]), box), strict)
        if saved is None and strict:
            expected = None
        assert found["2:11"] == {"m": expected, "n": 5}


@BOTH
def test_promoted_texts_keep_their_braces(strict: bool) -> None:
    box = subgraph("Box", [node(11, "T_Text", "text=STRING", ["", ""])], ("in", 0, 11, "text"), inputs="text")
    found = inputs(with_subgraphs(graph([node(2, "Box", values=['{"a": 1}'])]), box), strict)
    assert found["2:11"]["text"] == '{"a": 1}'


@BOTH
def test_only_the_first_link_of_an_input_makes_it_a_promoted_one(strict: bool) -> None:
    nodes = [node(11, "T_Sink", "x:*"), node(12, "T_Int", "value=INT", [42])]
    box = subgraph("Box", nodes, ("in", 0, 11, "x"), ("in", 0, 12, "value"), inputs="any")
    found = inputs(with_subgraphs(graph([node(2, "Box", values=[5])]), box), strict)
    assert found == {"2:11": {}, "2:12": {"value": 42}}


def test_values_of_inputs_of_missing_types_keep_their_places() -> None:
    nodes = [node(11, "Nobody", "file=COMBO"), node(12, "T_Int", "value=INT", [42])]
    box = subgraph("Box", nodes, ("in", 0, 11, "file"), ("in", 1, 12, "value"), inputs="file num")
    workflow = with_subgraphs(graph([node(2, "Box", values=["a.bin", 5])]), box)
    assert inputs(workflow, strict=False) == {"2:11": {"file": "a.bin"}, "2:12": {"value": 5}}


@BOTH
def test_values_of_a_host_may_be_an_object(strict: bool) -> None:
    workflow = with_subgraphs(graph([node(2, "Box", values={"num": 5})]), number_box())
    assert inputs(workflow, strict)["2:12"] == {"value": 5}


def test_a_bomb_of_subgraphs_is_refused_before_it_is_built() -> None:
    boxes = [subgraph("L0", [node(1000, "T_Src")])]
    for level in range(1, 20):
        boxes.append(subgraph(f"L{level}", [node(level * 10 + i, f"L{level - 1}") for i in range(4)]))
    with pytest.raises(ValueError, match="at most 100000"):
        convert(with_subgraphs(graph([node(1, "L19")]), *boxes), DEFINITIONS)
