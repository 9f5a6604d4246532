from app.compat.faces.comfy_execution.graph_utils import GraphBuilder, add_graph_prefix, is_link


def test_ids_are_counted_behind_the_prefix_and_names_are_kept() -> None:
    graph = GraphBuilder(prefix="5.0.0.")
    first, named = graph.node("A", x=1), graph.node("B", "end", y=first_out(graph))
    assert (first.id, named.id) == ("5.0.0.1", "5.0.0.end")
    assert graph.lookup_node("end") is named
    assert graph.node("B", "end") is named
    named.set_override_display_id("5")
    assert graph.finalize()["5.0.0.end"] == {
        "class_type": "B", "inputs": {"y": ["5.0.0.1", 0]}, "override_display_id": "5",
    }  # fmt: skip


def first_out(graph: GraphBuilder) -> list[object]:
    node = graph.lookup_node("1")
    assert node is not None
    return node.out(0)


def test_prefixes_differ_from_graph_to_graph() -> None:
    GraphBuilder.set_default_prefix("9", 2)
    assert [GraphBuilder().prefix, GraphBuilder().prefix] == ["9.2.0.", "9.2.1."]
    assert GraphBuilder.alloc_prefix("a", 1, 2) == "a.1.2."


def test_outputs_are_replaced_or_taken_away() -> None:
    graph = GraphBuilder(prefix="")
    source, user = graph.node("A"), graph.node("B", x=["1", 0], y=["1", 1], z=3)
    graph.replace_node_output("1", 0, ["7", 2])
    graph.replace_node_output("1", 1, None)
    graph.remove_node(source.id)
    assert graph.finalize() == {user.id: {"class_type": "B", "inputs": {"x": ["7", 2], "z": 3}}}


def test_a_whole_graph_gets_a_prefix() -> None:
    graph, outputs = add_graph_prefix(
        {"1": {"class_type": "A", "inputs": {"x": ["2", 0], "y": 5}}}, (["1", 0], 4), "p."
    )
    assert graph == {"p.1": {"class_type": "A", "inputs": {"x": ["p.2", 0], "y": 5}}}
    assert outputs == (["p.1", 0], 4)


def test_links_are_told_from_other_lists() -> None:
    assert is_link(["1", 0])
    assert not any(is_link(value) for value in (["1"], ["1", "0"], [1, 0], ("1", 0), ["1", True], None))
