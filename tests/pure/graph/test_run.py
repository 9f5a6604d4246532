"""Jobs run from prompt to outcome, with fakes for the two runtimes."""

from __future__ import annotations

import asyncio
import time

import numpy
import pytest

from app.events import ExecutionError, NodePreview, NodeText
from app.graph.run import run_job
from tests.fakes import FakeDiffusion, FakeLanguage, World, box, world
from tests.pure.graph.boxes import Counter, specs


@pytest.fixture
def here(tmp_path):
    return world(specs(), tmp_path)


SUM = {"1": box("Add", a=1, b=2), "2": box("Show", value=["1", 0])}


async def test_events_of_a_run_come_in_the_protocol_order(here: World):
    outcome = await run_job(here.job(SUM), here.services)
    assert here.kinds() == [
        "ExecutionStart",
        "ExecutionCached",
        "NodeStarted 1",
        "NodeFinished 1",
        "NodeStarted 2",
        "NodeFinished 2",
        "ExecutionSuccess",
    ]
    assert outcome.status == "success"
    assert outcome.outputs == {"2": {"value": [3]}}
    assert outcome.meta == {
        "2": {"node_id": "2", "display_node": "2", "parent_node": None, "real_node_id": "2"}
    }
    assert [name for name, _ in outcome.messages] == [
        "execution_start",
        "execution_cached",
        "execution_success",
    ]
    assert outcome.history_status()["completed"] is True


async def test_a_second_run_computes_nothing_and_shows_the_outputs_again(here: World):
    await run_job(here.job(SUM), here.services)
    here.events.clear()
    outcome = await run_job(here.job(SUM), here.services)
    assert here.kinds() == ["ExecutionStart", "ExecutionCached", "NodeFinished 2", "ExecutionSuccess"]
    assert here.events[1].nodes == ("1", "2")
    assert here.events[2].cached
    assert here.events[2].ui == {"value": [3]}
    assert outcome.outputs == {"2": {"value": [3]}}


async def test_only_what_changed_runs_again(here: World):
    prompt = {"1": box("Add", a=1, b=2), "2": box("Add", a=["1", 0], b=1), "3": box("Show", value=["2", 0])}
    await run_job(here.job(prompt), here.services)
    here.events.clear()
    prompt["2"] = box("Add", a=["1", 0], b=5)
    outcome = await run_job(here.job(prompt), here.services)
    assert here.events[1].nodes == ("1",)
    assert "NodeStarted 1" not in here.kinds()
    assert outcome.outputs["3"] == {"value": [8]}


async def test_equal_nodes_share_a_result_whatever_their_ids(tmp_path):
    counter = Counter()
    here = world([*specs(), counter.spec()], tmp_path)
    prompt = {
        "1": box("Count", value=7),
        "2": box("Count", value=7),
        "3": box("Add", a=["1", 0], b=["2", 0]),
        "4": box("Show", value=["3", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["4"] == {"value": [14]}
    assert counter.calls == 1


async def test_two_running_jobs_compute_a_common_node_once(tmp_path):
    counter = Counter()
    counter.gate.clear()
    here = world([*specs(), counter.spec()], tmp_path)
    one = here.job({"1": box("Count", value=7), "2": box("Show", value=["1", 0])})
    other = here.job(
        {"9": box("Count", value=7), "8": box("Add", a=["9", 0], b=1), "7": box("Show", value=["8", 0])}
    )
    both = asyncio.gather(run_job(one, here.services), run_job(other, here.services))
    while here.kinds().count("NodeStarted 1") + here.kinds().count("NodeStarted 9") < 2:
        await asyncio.sleep(0.005)
    counter.gate.set()
    first, second = await both
    assert first.outputs == {"2": {"value": [7]}}
    assert second.outputs == {"7": {"value": [8]}}
    assert counter.calls == 1


async def test_when_the_computing_job_is_stopped_the_waiting_one_computes(tmp_path):
    counter = Counter()
    counter.gate.clear()
    here = world([*specs(), counter.spec()], tmp_path)
    prompt = {"1": box("Count", value=7), "2": box("Show", value=["1", 0])}
    one, other = here.job(prompt), here.job(prompt)
    first = asyncio.create_task(run_job(one, here.services))
    await until(lambda: counter.inside == 1)
    second = asyncio.create_task(run_job(other, here.services))
    await until(lambda: here.kinds().count("NodeStarted 1") == 2)
    one.stop.set()
    assert (await first).status == "interrupted"
    await until(lambda: counter.calls == 2)
    counter.gate.set()
    assert (await second).outputs == {"2": {"value": [7]}}
    assert not len(here.services.flights)


async def test_an_error_is_told_in_full_and_ends_the_job(here: World):
    prompt = {
        "1": box("Number", value=4),
        "2": box("Explode", value=["1", 0]),
        "3": box("Show", value=["2", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    event = here.events[-1]
    assert isinstance(event, ExecutionError)
    assert (event.node_id, event.node_type) == ("2", "Explode")
    assert event.exception_message == "it went wrong\n"
    assert event.exception_type == "RuntimeError"
    assert event.executed == ("1",)
    assert event.current_inputs == {"value": [4]}
    assert any("explode" in line for line in event.traceback)
    assert outcome.status == "error"
    name, data = outcome.messages[-1]
    assert name == "execution_error"
    assert data["node_id"] == "2"
    assert outcome.history_status()["status_str"] == "error"


@pytest.mark.parametrize(
    ("box_name", "kind", "message"),
    [
        ("Explode", "stop", "StopIteration"),
        ("Explode", "exit", "SystemExit"),
        ("ExplodeAsync", "", "it went wrong"),
        ("ExplodeAsync", "exit", "SystemExit"),
        ("ExplodeAsync", "cancel", "cancelled itself"),
    ],
)
async def test_whatever_a_node_raises_ends_only_its_job(here: World, box_name: str, kind: str, message: str):
    bad = here.job({"1": box(box_name, value=1, kind=kind), "2": box("Show", value=["1", 0])})
    good = here.job(SUM)
    outcomes = await asyncio.gather(run_job(bad, here.services), run_job(good, here.services))
    assert [outcome.status for outcome in outcomes] == ["error", "success"]
    assert message in outcomes[0].messages[-1][1]["exception_message"]


async def test_async_nodes_of_many_jobs_wait_side_by_side(here: World):
    jobs = [
        here.job({"1": box("Doze", value=i, seconds=0.2), "2": box("Show", value=["1", 0])})
        for i in range(16)
    ]
    began = time.monotonic()
    outcomes = await asyncio.gather(*(run_job(job, here.services) for job in jobs))
    assert time.monotonic() - began < 1.0
    assert [outcome.outputs["2"]["value"] for outcome in outcomes] == [[i] for i in range(16)]


async def test_a_failing_job_and_a_slow_one_hold_back_nobody(here: World):
    slow = here.job({"1": box("Doze", value=1, seconds=30), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(slow, here.services))
    await until(lambda: "NodeStarted 1" in here.kinds())
    bad = here.job({"1": box("Explode", value=1), "2": box("Show", value=["1", 0])})
    assert (await run_job(bad, here.services)).status == "error"
    assert (await run_job(here.job(SUM), here.services)).status == "success"
    slow.stop.set()
    assert (await running).status == "interrupted"


async def test_plain_functions_of_one_pack_run_one_at_a_time(tmp_path):
    counter, free = Counter(seconds=0.01), Counter()
    here = world([*specs(), counter.spec("Shy", pack="shy"), free.spec("Free")], tmp_path)
    prompt = {}
    for i in range(6):
        prompt |= {f"s{i}": box("Shy", value=i), f"f{i}": box("Free", value=i)}
        prompt |= {f"os{i}": box("Show", value=[f"s{i}", 0]), f"of{i}": box("Show", value=[f"f{i}", 0])}
    free.gate.clear()
    running = asyncio.create_task(run_job(here.job(prompt), here.services))
    await until(lambda: free.inside == 6 and counter.calls == 6 and counter.inside == 0)
    free.gate.set()
    assert (await running).status == "success"
    assert counter.most == 1
    assert free.most == 6


async def test_an_interrupt_ends_one_job_at_once_and_leaves_nothing_running(here: World):
    job = here.job({"1": box("Doze", value=1, seconds=30), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(job, here.services))
    await until(lambda: "NodeStarted 1" in here.kinds())
    job.stop.set()
    outcome = await asyncio.wait_for(running, 2)
    assert here.kinds()[-1] == "ExecutionInterrupted"
    assert (here.events[-1].node_id, here.events[-1].node_type) == ("1", "Doze")
    assert outcome.history_status()["status_str"] == "error"
    assert outcome.history_status()["completed"] is False
    assert [name for name, _ in outcome.messages][-1] == "execution_interrupted"
    assert len(asyncio.all_tasks()) == 1


async def test_an_interrupted_job_cancels_its_requests(tmp_path):
    llm = FakeLanguage(hold=True)
    here = world(specs(), tmp_path, llm=llm)
    job = here.job({"1": box("Shout", text="a b c"), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(job, here.services))
    await until(lambda: llm.requests)
    job.stop.set()
    assert (await asyncio.wait_for(running, 2)).status == "interrupted"
    assert llm.cancelled == {llm.requests[0].id}


async def test_an_interrupted_job_waits_for_its_plain_functions(tmp_path):
    deaf = Counter(is_deaf=True)
    deaf.gate.clear()
    here = world([*specs(), deaf.spec()], tmp_path)
    job = here.job({"1": box("Count", value=1), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(job, here.services))
    await until(lambda: deaf.inside == 1)
    job.stop.set()
    await asyncio.sleep(0.05)
    assert not running.done()
    deaf.gate.set()
    assert (await asyncio.wait_for(running, 2)).status == "interrupted"
    assert deaf.inside == 0


async def test_a_node_that_interrupts_itself_interrupts_its_job(here: World):
    outcome = await run_job(
        here.job({"1": box("Interrupts", value=1), "2": box("Show", value=["1", 0])}), here.services
    )
    assert outcome.status == "interrupted"
    assert (here.events[-1].node_id, here.events[-1].node_type) == ("1", "Interrupts")


async def test_when_one_item_of_a_list_fails_the_others_are_given_up(here: World):
    prompt = {
        "1": box("Spread", count=3),
        "2": box("DozeOrFail", value=["1", 0]),
        "3": box("Show", value=["2", 0]),
    }
    outcome = await asyncio.wait_for(run_job(here.job(prompt), here.services), 2)
    assert outcome.messages[-1][1]["exception_message"] == "zero\n"
    assert outcome.messages[-1][1]["current_inputs"] == {"value": [0, 1, 2]}
    assert len(asyncio.all_tasks()) == 1


async def test_an_output_that_another_job_computes_is_shown_to_both(here: World):
    prompt = {"1": box("Doze", value=5, seconds=0.05), "2": box("Quiet", value=["1", 0])}
    await asyncio.gather(*(run_job(here.job(prompt), here.services) for _ in range(2)))
    shown = [
        event.cached
        for event in here.events
        if type(event).__name__ == "NodeFinished" and event.node.node_id == "2"
    ]
    assert shown == [False, True]


async def test_a_job_stopped_before_its_start_runs_no_node(here: World):
    job = here.job(SUM)
    job.stop.set()
    assert (await run_job(job, here.services)).status == "interrupted"
    assert "NodeStarted 1" not in here.kinds()


async def test_tokens_reach_the_client_as_all_the_text_so_far(here: World):
    outcome = await run_job(
        here.job({"1": box("Shout", text="one two"), "2": box("Show", value=["1", 0])}), here.services
    )
    texts = [event.text for event in here.events if isinstance(event, NodeText)]
    assert texts == ["ONE ", "ONE TWO "]
    assert outcome.outputs["2"] == {"value": ["ONE TWO "]}


async def test_calls_for_several_items_write_on_lines_of_their_own(here: World):
    prompt = {
        "1": box("Lines", text="one two\nthree four five\nsix"),
        "2": box("Shout", text=["1", 0]),
        "3": box("Show", value=["2", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    texts = [event.text for event in here.events if isinstance(event, NodeText)]
    assert texts[-1] == "\n".join(outcome.outputs["3"]["value"])


async def test_progress_and_previews_of_a_request_reach_the_client(tmp_path):
    rgb = numpy.zeros((8, 16, 3), numpy.uint8)
    here = world(specs(), tmp_path, diffusion=FakeDiffusion(rgb))
    await run_job(here.job({"1": box("Sample", value=5), "2": box("Show", value=["1", 0])}), here.services)
    wanted = [kind for kind in here.kinds() if kind.startswith(("NodeProgress", "NodePreview"))]
    assert wanted == ["NodeProgress 1", "NodePreview 1"] * 3
    preview = next(event for event in here.events if isinstance(event, NodePreview))
    assert preview.image.startswith(b"\xff\xd8")


async def test_lists_fan_out_and_come_together(here: World):
    prompt = {
        "1": box("Spread", count=4),
        "2": box("Add", a=["1", 0], b=10),
        "3": box("Gather", values=["2", 0]),
        "4": box("Show", value=["3", 0]),
        "5": box("Show", value=["2", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["4"] == {"value": [46]}
    assert outcome.outputs["5"] == {"value": [10, 11, 12, 13]}


async def test_an_empty_list_means_no_calls(here: World):
    prompt = {"1": box("Spread", count=0), "2": box("Add", a=["1", 0], b=1), "3": box("Show", value=["2", 0])}
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.status == "success"
    assert outcome.outputs == {}


async def test_a_lazy_input_is_computed_only_when_asked_for(here: World):
    prompt = {
        "1": box("Number", value=1),
        "2": box("Explode", value=2),
        "3": box("Choose", first=True, a=["1", 0], b=["2", 0]),
        "4": box("Show", value=["3", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["4"] == {"value": [1]}
    kinds = here.kinds()
    assert "NodeStarted 2" not in kinds
    assert kinds.count("NodeStarted 3") == 2
    assert kinds.index("NodeStarted 3") < kinds.index("NodeStarted 1")


async def test_a_silent_blocker_stops_its_consumers_and_not_the_job(here: World):
    prompt = {
        "1": box("Block", value=1),
        "2": box("Show", value=["1", 0]),
        "3": box("Add", a=1, b=1),
        "4": box("Show", value=["3", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.status == "success"
    assert outcome.outputs == {"4": {"value": [2]}}
    assert "ExecutionError" not in here.kinds()


async def test_a_blocker_with_a_message_is_reported_once(here: World):
    prompt = {
        "1": box("Block", value=1, message="no cat in the picture"),
        "2": box("Doze", value=["1", 0]),
        "3": box("Show", value=["2", 0]),
        "4": box("Show", value=["1", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    errors = [event for event in here.events if isinstance(event, ExecutionError)]
    assert [error.exception_type for error in errors] == ["ExecutionBlocked"]
    assert "no cat in the picture" in errors[0].exception_message
    assert outcome.status == "success"


async def test_an_expansion_runs_in_place_of_its_node(here: World):
    prompt = {"1": box("Double", value=21), "2": box("Show", value=["1", 0])}
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["2"] == {"value": [42]}
    inner = next(
        event for event in here.events if getattr(event, "node", None) and event.node.node_id.endswith(".sum")
    )
    assert (inner.node.display_id, inner.node.parent_id) == ("1", "1")
    here.events.clear()
    await run_job(here.job(prompt), here.services)
    assert not [kind for kind in here.kinds() if kind.startswith("NodeStarted")]


async def test_a_file_that_changed_makes_its_node_run_again(here: World):
    here.library.folders["input"] = ["cat.png"]
    prompt = {"1": box("Load", image="cat.png"), "2": box("Show", value=["1", 0])}
    await run_job(here.job(prompt), here.services)
    here.events.clear()
    await run_job(here.job(prompt), here.services)
    assert "NodeStarted 1" not in here.kinds()
    here.library.stamps["input", "cat.png"] = "changed"
    await run_job(here.job(prompt), here.services)
    assert "NodeStarted 1" in here.kinds()


@pytest.mark.parametrize("answer", [float("nan"), ValueError("cannot say")])
async def test_a_fingerprint_of_nan_or_an_error_means_always(tmp_path, answer):
    def fingerprint(value):
        if isinstance(answer, Exception):
            raise answer
        return answer

    counter = Counter()
    here = world([*specs(), counter.spec(fingerprint=fingerprint)], tmp_path)
    prompt = {"1": box("Count", value=1), "2": box("Show", value=["1", 0])}
    await run_job(here.job(prompt), here.services)
    await run_job(here.job(prompt), here.services)
    assert counter.calls == 2


async def test_a_job_that_is_given_up_leaves_no_flight_and_no_pin(here: World):
    job = here.job({"1": box("Doze", value=1, seconds=30), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(job, here.services))
    await until(lambda: "NodeStarted 1" in here.kinds())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not len(here.services.flights)
    here.services.cache.max_bytes = 0
    here.services.cache.clear()
    here.services.cache.check()
    assert not len(here.services.cache)


async def test_without_room_in_the_cache_everything_runs_every_time(here: World):
    here.services.cache.max_bytes = 0
    await run_job(here.job(SUM), here.services)
    here.events.clear()
    outcome = await run_job(here.job(SUM), here.services)
    assert "NodeStarted 1" in here.kinds()
    assert outcome.outputs == {"2": {"value": [3]}}


async def until(condition) -> None:
    for _ in range(400):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")
