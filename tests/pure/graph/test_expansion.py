"""Nodes that answer with new nodes: loops, blocked bodies, faulty expansions."""

from __future__ import annotations

import pytest

from app.graph.run import run_job
from nodes.context import NodeContext
from nodes.declare import spec_of
from nodes.spec import NodeResult
from nodes.types import Anything
from tests.fakes import World, box, world
from tests.pure.graph.boxes import specs


def count_down(ctx: NodeContext, *, left: int, total: int) -> NodeResult:
    """A loop as packs build it: as long as something is left, the node becomes a sum and itself."""
    if left == 0:
        return NodeResult((total,))
    prefix = f"{ctx.node_id}."
    return NodeResult(
        ([prefix + "again", 0],),
        expand={
            prefix + "sum": box("Add", a=total, b=left),
            prefix + "again": box("CountDown", left=left - 1, total=[prefix + "sum", 0]),
        },
    )


def two_ways(ctx: NodeContext, *, value: Anything) -> NodeResult:
    """An output node inside, and one value that is no link."""
    return NodeResult(
        (["deep.add", 0], "plain"),
        expand={"deep.add": box("Add", a=value, b=1), "deep.show": box("Show", value=value)},
    )


def faulty(ctx: NodeContext, *, kind: str) -> NodeResult:
    expands = {
        "class": {"x": box("Nowhere")},
        "link": {"x": box("Add", a=["none", 0], b=1)},
        "slot": {"x": box("Add", a=["1", 5], b=1)},
        "inside": {"x": box("Explode", value=1)},
        "again": {"1": box("Number", value=1)},
    }
    return NodeResult((["x", 0],), expand=expands[kind])


@pytest.fixture
def here(tmp_path) -> World:
    return world(
        [
            *specs(),
            spec_of(count_down, "CountDown", category="t", returns=[int]),
            spec_of(two_ways, "TwoWays", category="t", returns=[int, str]),
            spec_of(faulty, "Faulty", category="t", returns=[int]),
        ],
        tmp_path,
    )


@pytest.mark.parametrize("rounds", [0, 5, 400])
@pytest.mark.parametrize("cache_bytes", [0, 10**9])
async def test_a_loop_gives_the_same_under_every_cache(here: World, rounds: int, cache_bytes: int):
    here.services.cache.max_bytes = cache_bytes
    prompt = {"1": box("CountDown", left=rounds, total=0), "2": box("Show", value=["1", 0])}
    for _ in range(2):
        outcome = await run_job(here.job(prompt), here.services)
        assert outcome.outputs["2"] == {"value": [rounds * (rounds + 1) // 2]}


async def test_output_nodes_inside_are_shown_under_the_box_that_expanded(here: World):
    prompt = {
        "1": box("TwoWays", value=4),
        "2": box("Show", value=["1", 0]),
        "3": box("Show", value=["1", 1]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs == {
        "deep.show": {"value": [4]},
        "2": {"value": [5]},
        "3": {"value": ["plain"]},
    }
    assert outcome.meta["deep.show"] == {
        "node_id": "deep.show",
        "display_node": "1",
        "parent_node": "1",
        "real_node_id": "1",
    }


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("class", "Node 'Nowhere' not found"),
        ("link", "which is not there"),
        ("slot", "which is not there"),
        ("inside", "it went wrong"),
        ("again", "a second time"),
    ],
)
async def test_a_faulty_expansion_is_the_fault_of_the_box_on_the_canvas(here: World, kind: str, words: str):
    prompt = {"1": box("Faulty", kind=kind), "2": box("Show", value=["1", 0])}
    outcome = await run_job(here.job(prompt), here.services)
    data = outcome.messages[-1][1]
    assert data["node_id"] == "1"
    assert data["node_type"] == "Faulty"
    assert words in data["exception_message"]
    assert not len(here.services.flights)
