from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import pytest

from app.graph.keys import cache_keys
from app.graph.parse import Graph, parse
from nodes.declare import spec_of
from nodes.registry import Registry
from nodes.types import Anything, Options
from tests.fakes import FakeLibrary, box
from tests.pure.graph.boxes import Counter, number, specs

REGISTRY = Registry([*specs(), Counter().spec()])


def keys(prompt, stamps=None, registry=REGISTRY):
    graph = parse(prompt, registry, FakeLibrary())
    assert isinstance(graph, Graph)
    return cache_keys(graph.nodes, stamps or {})


def test_ids_and_the_order_of_nodes_do_not_matter():
    one = keys({"1": box("Number", value=1), "2": box("Add", a=["1", 0], b=2)})
    other = keys({"b": box("Add", b=2, a=["a", 0]), "a": box("Number", value=1)})
    assert one["2"] == other["b"]


@pytest.mark.parametrize(
    "changed",
    [
        {"1": box("Number", value=2), "2": box("Add", a=["1", 0], b=2)},
        {"1": box("Number", value=1), "2": box("Add", a=["1", 0], b=3)},
        {"1": box("Number", value=1), "2": box("Add", b=["1", 0], a=2)},
        {"1": box("Number", value=1.0), "2": box("Add", a=["1", 0], b=2)},
        {"1": box("Number", value=True), "2": box("Add", a=["1", 0], b=2)},
        {"1": box("Doze", value=1), "2": box("Add", a=["1", 0], b=2)},
        {"1": box("Number", value=1), "2": box("Add", a=["1", 1], b=2)},
    ],
)
def test_any_change_above_changes_the_key(changed):
    prompt = {"1": box("Number", value=1), "2": box("Add", a=["1", 0], b=2)}
    assert keys(prompt)["2"] != keys(changed)["2"]


def test_a_stamp_joins_the_key_and_none_takes_it_away_from_all_below():
    prompt = {"1": box("Number", value=1), "2": box("Add", a=["1", 0], b=2)}
    assert keys(prompt, {"1": "a"})["2"] != keys(prompt, {"1": "b"})["2"]
    assert keys(prompt, {"1": None}) == {"1": None, "2": None}


def test_what_json_cannot_hold_has_no_key():
    assert keys({"1": box("Number", value=float("nan"))}) == {"1": None}


def test_a_class_that_uses_its_id_keeps_equal_nodes_apart():
    plain = spec_of(number, "Number", category="t")
    for spec in (replace(plain, uses_node_id=True), replace(plain, not_idempotent=True)):
        found = keys({"1": box("Number", value=1), "2": box("Number", value=1)}, registry=Registry([spec]))
        assert found["1"] != found["2"]


def test_a_deep_chain_is_no_trouble():
    prompt = {"0": box("Number", value=0)}
    prompt |= {str(i): box("Add", a=[str(i - 1), 0], b=1) for i in range(1, 5000)}
    assert len(set(keys(prompt).values())) == 5000


def test_a_node_that_takes_the_link_itself_changes_with_what_stands_behind_it():
    def peeks(*, value: Annotated[Anything, Options({"rawLink": True})]) -> int:
        return 0

    registry = Registry([*specs(), spec_of(peeks, "Peeks", category="t")])
    before, after = (
        keys({"1": box("Number", value=value), "2": box("Peeks", value=["1", 0])}, registry=registry)
        for value in (1, 2)
    )
    assert before["2"] != after["2"]
    elsewhere = keys({"9": box("Number", value=1), "2": box("Peeks", value=["9", 0])}, registry=registry)
    assert before["2"] != elsewhere["2"]
