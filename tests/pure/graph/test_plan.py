"""The Plan alone: events in, calls out. Random walks hold its invariants."""

from __future__ import annotations

import random

import pytest

from app.graph.parse import Graph, parse, parse_expansion
from app.graph.plan import NodeCall, Plan
from app.graph.values import Entry, blocked, blocker_in
from nodes.registry import Registry
from nodes.spec import NodeResult
from tests.fakes import FakeLibrary, box
from tests.pure.graph.boxes import specs
from tests.pure.graph.prompts import random_prompt

REGISTRY = Registry(specs())
LIBRARY = FakeLibrary()


def graph_of(prompt) -> Graph:
    graph = parse(prompt, REGISTRY, LIBRARY)
    assert isinstance(graph, Graph)
    return graph


def plan_of(prompt, *outputs, cached=None) -> Plan:
    return Plan(graph_of(prompt), outputs, cached or {})


def ids(calls) -> list[str]:
    return [call.node.id for call in calls]


DIAMOND = {
    "top": box("Number", value=1),
    "left": box("Add", a=["top", 0], b=1),
    "right": box("Add", a=["top", 0], b=2),
    "sum": box("Add", a=["left", 0], b=["right", 0]),
    "out": box("Show", value=["sum", 0]),
    "aside": box("Number", value=9),
}


def test_nodes_become_ready_when_their_inputs_are_there():
    plan = plan_of(DIAMOND, "out")
    assert ids(plan.ready()) == ["top"]
    assert plan.ready() == []
    plan.finish("top", [NodeResult((1,))])
    assert sorted(ids(plan.ready())) == ["left", "right"]
    plan.finish("left", [NodeResult((2,))])
    assert plan.ready() == []
    plan.finish("right", [NodeResult((3,))])
    (call,) = plan.ready()
    assert call.invocations == ({"a": 2, "b": 3},)
    plan.finish("sum", [NodeResult((5,))])
    plan.ready()
    plan.finish("out", [NodeResult(ui={"value": [5]})])
    assert plan.done
    assert plan.finished == ("top", "left", "right", "sum", "out")


def test_what_no_output_needs_never_runs():
    assert "aside" not in walked(plan_of(DIAMOND, "out"), random.Random(1))


def test_inputs_of_cached_nodes_are_not_wanted():
    plan = plan_of(DIAMOND, "out", cached={"sum": Entry(((5,),)), "left": Entry(((2,),))})
    assert ids(plan.ready()) == ["out"]


def test_a_cached_output_leaves_nothing_to_do():
    assert plan_of(DIAMOND, "out", cached={"out": Entry(())}).done


def test_outputs_come_before_their_neighbours_and_those_before_the_rest():
    prompt = {
        "far": box("Number", value=1),
        "near": box("Number", value=2),
        "mid": box("Add", a=["far", 0], b=["far", 0]),
        "end": box("Add", a=["mid", 0], b=["near", 0]),
        "out": box("Show", value=["end", 0]),
        "now": box("Show", value=3),
    }
    assert ids(plan_of(prompt, "out", "now").ready()) == ["now", "near", "far"]


def test_a_stopped_plan_hands_out_nothing_and_is_done_when_nothing_runs():
    plan = plan_of(DIAMOND, "out")
    plan.ready()
    plan.stop()
    assert not plan.done
    plan.drop("top")
    assert plan.done
    assert plan.ready() == []


def test_a_failure_stops_the_plan():
    plan = plan_of(DIAMOND, "out")
    plan.ready()
    plan.fail("top")
    assert plan.done


def test_an_answer_for_a_node_that_is_not_out_is_a_bug():
    with pytest.raises(AssertionError, match="not running"):
        plan_of(DIAMOND, "out").finish("top", [NodeResult((1,))])


def test_an_expansion_with_a_link_into_nowhere_is_an_error():
    plan = plan_of({"1": box("Double", value=1), "2": box("Show", value=["1", 0])}, "2")
    plan.ready()
    with pytest.raises(ValueError, match="not there"):
        plan.finish("1", [NodeResult((["nowhere", 0],), expand={"x": box("Number", value=1)})])


def test_a_very_long_chain_runs():
    prompt = {"0": box("Number", value=0)}
    prompt |= {str(i): box("Add", a=[str(i - 1), 0], b=1) for i in range(1, 3000)}
    plan = plan_of(prompt, "2999")
    walked(plan, random.Random(0), check=False)
    assert plan.entry("2999").outputs == ((2999,),)


# Random walks


def answer(plan: Plan, call: NodeCall) -> None:
    """Runs the node's real code, as the loop does, without a loop."""
    node = call.node
    if call.kind == "ask":
        names = [
            name
            for inputs in call.invocations
            if blocker_in(node, inputs) is None
            for name in node.spec.lazy_needs(None, **inputs)
        ]
        plan.need(node.id, names)
        return
    results = [
        blocked(node) if blocker_in(node, inputs) else node.spec.call(None, **inputs)
        for inputs in call.invocations
    ]
    added = [
        new
        for result in results
        if result.expand
        for new in parse_expansion(result.expand, node, REGISTRY, LIBRARY)
    ]
    plan.finish(node.id, results, added)


def walked(plan: Plan, rng: random.Random, check: bool = True) -> list[str]:
    """Finishes calls in random order until the plan is done; returns the ids that ran."""
    out: list[NodeCall] = []
    ran: list[str] = []
    while not plan.done:
        out.extend(plan.ready())
        assert out, f"stuck: {plan.waiting}"
        call = out.pop(rng.randrange(len(out)))
        if call.kind == "run":
            ran.append(call.node.id)
        answer(plan, call)
        if check:
            plan.check()
    assert len(ran) == len(set(ran)), "a node ran twice"
    return ran


@pytest.mark.parametrize("seed", range(150))
def test_random_graphs_run_every_wanted_node_once_and_end(seed):
    rng = random.Random(seed)
    prompt = random_prompt(rng)
    outputs = [id for id in prompt if id.startswith("out")]
    first, second = plan_of(prompt, *outputs), plan_of(prompt, *outputs)
    ran = walked(first, rng)
    assert set(outputs) <= set(ran)
    again = walked(second, random.Random(seed + 1))
    assert set(again) & set(prompt) == set(ran) & set(prompt)
    assert len(again) == len(ran)
    for id in outputs:
        assert first.entry(id).ui == second.entry(id).ui


@pytest.mark.parametrize("seed", range(60))
def test_what_is_cached_changes_no_result(seed):
    rng = random.Random(seed)
    prompt = random_prompt(rng)
    outputs = [id for id in prompt if id.startswith("out")]
    first = plan_of(prompt, *outputs)
    ran = walked(first, rng)
    cached = {id: first.entry(id) for id in ran if id in prompt and rng.random() < 0.5}
    second = plan_of(prompt, *outputs, cached=cached)
    again = walked(second, rng)
    assert not set(again) & set(cached)
    assert [second.entry(id).ui for id in outputs] == [first.entry(id).ui for id in outputs]


@pytest.mark.parametrize("seed", range(60))
def test_a_stop_at_any_moment_leaves_nothing_running(seed):
    rng = random.Random(seed)
    prompt = random_prompt(rng)
    plan = plan_of(prompt, *[id for id in prompt if id.startswith("out")])
    out: list[NodeCall] = []
    for _ in range(rng.randint(0, 12)):
        out.extend(plan.ready())
        if plan.done or not out:
            break
        answer(plan, out.pop(rng.randrange(len(out))))
    if rng.random() < 0.5 and out:
        plan.fail(out.pop().node.id)
    plan.stop()
    assert plan.ready() == []
    for call in out:
        plan.drop(call.node.id)
        plan.check()
    assert plan.done
    assert not plan.running
