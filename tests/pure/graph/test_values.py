from __future__ import annotations

from dataclasses import replace

import pytest

from app.graph.parse import Node
from app.graph.values import collected, invocations, merged_ui
from nodes.declare import spec_of
from nodes.spec import Blocker, NodeResult
from tests.pure.graph.boxes import add, gather, quiet, spread


def node(function, **declaration) -> Node:
    return Node("1", spec_of(function, "X", category="t", **declaration), (), {}, {})


def test_shorter_lists_repeat_their_last_item():
    assert invocations(node(add), {"a": (1, 2, 3), "b": (9,)}) == (
        {"a": 1, "b": 9},
        {"a": 2, "b": 9},
        {"a": 3, "b": 9},
    )


def test_a_node_without_inputs_is_called_once():
    assert invocations(node(add), {}) == ({},)


def test_an_empty_list_means_no_call():
    assert invocations(node(add), {"a": (), "b": (1, 2)}) == ()


def test_a_node_that_takes_lists_is_called_once_with_all():
    assert invocations(node(gather, input_is_list=True), {"values": (1, 2), "k": (3,)}) == (
        {"values": [1, 2], "k": [3]},
    )


def test_list_outputs_are_joined_and_others_appended():
    lists = node(spread, output_is_list=[True])
    assert collected(lists, [NodeResult(([1, 2],)), NodeResult(([3],))]).outputs == ((1, 2, 3),)
    assert collected(node(add), [NodeResult((1,)), NodeResult((2,))]).outputs == ((1, 2),)


def test_a_blocker_in_a_list_output_stays_one_item():
    blocker = Blocker()
    assert collected(node(spread, output_is_list=[True]), [NodeResult((blocker,))]).outputs == ((blocker,),)


def test_too_few_values_are_a_fault_and_none_at_all_are_fine_for_outputs():
    with pytest.raises(ValueError, match="declares 1 outputs and returned 0"):
        collected(node(add), [NodeResult()])
    shows = Node("1", replace(spec_of(add, "X", category="t"), is_output=True), (), {}, {})
    assert collected(shows, [NodeResult(ui={"a": [1]})]).outputs == ((None,),)
    assert collected(node(quiet), [NodeResult()]).outputs == ()


def test_ui_of_several_calls_is_joined_key_by_key():
    assert merged_ui([{"images": [1], "n": [1]}, {"images": [2]}]) == {"images": [1, 2], "n": [1]}
    assert merged_ui([]) is None
