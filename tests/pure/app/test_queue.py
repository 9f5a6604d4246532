from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from app.graph.parse import Graph
from app.graph.validate import ValidGraph
from app.queue import Job, JobQueue

VALID = ValidGraph(Graph({}, {"1": {}}), ("1",), {})


def job(id: str, number: float = 0) -> Job:
    return Job(id, number, VALID, extra_data={"client_id": "c"})


def test_jobs_start_by_number_then_by_arrival():
    queue = JobQueue()
    for id, number in (("b", 1), ("a", 1), ("front", -2), ("last", 2.5)):
        queue.put(job(id, number))
    assert [one.id for one in queue.waiting] == ["front", "b", "a", "last"]
    assert [queue.start_next().id for _ in range(4)] == ["front", "b", "a", "last"]
    assert queue.start_next() is None


def test_no_more_run_than_are_allowed():
    queue = JobQueue(max_running=1)
    queue.put(job("a"))
    queue.put(job("b"))
    assert queue.start_next().id == "a"
    assert queue.start_next() is None
    assert (queue.state("a"), queue.state("b"), queue.state("c")) == ("running", "pending", None)
    queue.finish("a")
    assert queue.start_next().id == "b"


def test_numbers_count_up_and_the_front_is_negative():
    queue = JobQueue()
    assert [queue.next_number(), queue.next_number(front=True), queue.next_number()] == [0, -1, 2]


def test_deleting_takes_only_waiting_jobs():
    queue = JobQueue(max_running=1)
    for id in "abc":
        queue.put(job(id))
    queue.start_next()
    assert [one.id for one in queue.delete(["a", "b", "b", "nobody"])] == ["b"]
    assert [one.id for one in queue.clear()] == ["c"]
    assert [one.id for one in queue.running] == ["a"]
    assert queue.remaining == 1


def test_a_stop_reaches_the_named_job_and_no_later_one():
    queue = JobQueue()
    for id in "ab":
        queue.put(job(id))
        queue.start_next()
    queue.put(job("c"))
    assert [one.id for one in queue.stop("b")] == ["b"]
    assert [one.stop.is_set for one in queue.running] == [False, True]
    assert queue.stop("c") == []
    queue.stop()
    assert not queue.start_next().stop.is_set


def test_a_job_is_shown_in_the_protocols_form():
    assert job("a", 3).as_json() == [3, "a", {"1": {}}, {"client_id": "c"}, ["1"]]


@pytest.mark.parametrize("seed", range(20))
def test_any_use_loses_no_job(seed):
    rng = random.Random(seed)
    queue = JobQueue(max_running=3)
    put, gone = set(), set()
    for i in range(200):
        match rng.randrange(4):
            case 0 | 1:
                queue.put(job(str(i), rng.randrange(5)))
                put.add(str(i))
            case 2:
                can_start = bool(queue.waiting) and len(queue.running) < 3
                assert (queue.start_next() is not None) == can_start
            case 3:
                for running in queue.running[:1]:
                    queue.finish(running.id)
                    gone.add(running.id)
        assert len(queue.running) <= 3
        here = {one.id for one in (*queue.waiting, *queue.running)}
        assert here | gone == put
        assert not here & gone
        assert queue.remaining == len(here)
        numbers = [one.number for one in queue.waiting]
        assert numbers == sorted(numbers)


def test_a_job_that_has_to_be_alone_waits_for_the_others_and_holds_them_back():
    queue = JobQueue()
    for one in (job("a"), Job("suspect", 1, VALID, runs_alone=True), job("b", 2)):
        queue.put(one)
    assert queue.start_next().id == "a"
    assert queue.start_next() is None
    queue.finish("a")
    assert queue.start_next().id == "suspect"
    assert queue.start_next() is None
    queue.finish("suspect")
    assert queue.start_next().id == "b"


def job_of(pack: str | None, id: str) -> Job:
    spec = SimpleNamespace(pack=pack)
    graph = Graph({"1": SimpleNamespace(spec=spec)}, {"1": {}})  # type: ignore[dict-item]
    return Job(id, 0, ValidGraph(graph, ("1",), {}))


def test_jobs_that_wait_for_a_late_pack_leave_their_places_to_those_that_do_not_need_it() -> None:
    queue = JobQueue(max_running=2)
    for id, pack in (
        ("holds", "slow"),
        ("waits", "slow"),
        ("more", "slow"),
        ("other", "quick"),
        ("core", None),
    ):
        queue.put(job_of(pack, id))
    assert [queue.start_next().id for _ in range(2)] == ["holds", "waits"]
    assert queue.start_next() is None
    queue.hold_up(frozenset({"slow"}), frozenset({"waits"}))
    assert queue.start_next().id == "other"
    assert queue.start_next() is None
    queue.finish("other")
    assert queue.start_next().id == "core"
    queue.hold_up(frozenset(), frozenset())
    queue.finish("core")
    assert queue.start_next() is None
    queue.finish("holds")
    assert queue.start_next().id == "more"


def test_a_late_pack_does_not_bend_a_strict_order() -> None:
    queue = JobQueue(max_running=1)
    queue.put(job_of("slow", "a"))
    queue.put(job_of(None, "b"))
    assert queue.start_next().id == "a"
    queue.hold_up(frozenset({"slow"}), frozenset({"a"}))
    assert queue.start_next() is None
