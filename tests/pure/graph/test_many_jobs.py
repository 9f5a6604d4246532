"""Many jobs at once, some of them stopped or failing: each ends as if it had been alone."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from PIL import Image

from app.events import NodePreview, NodeProgress, NodeStarted, NodeText
from app.graph.run import run_job
from app.queue import Job, JobQueue
from nodes.context import NodeContext
from nodes.declare import spec_of
from tests.fakes import World, box, world
from tests.pure.graph.boxes import specs
from tests.pure.graph.prompts import random_prompt


def with_troubles(prompt: dict, rng: random.Random) -> dict:
    """Puts a wait before the outputs, and sometimes a node that fails."""
    for id in [id for id in prompt if id.startswith("out")]:
        source = prompt[id]["inputs"]["value"]
        kind = rng.choice(["Doze", "Doze", "Doze", "Explode"])
        wait = {"seconds": rng.random() * 0.02} if kind == "Doze" else {}
        prompt[f"wait {id}"] = box(kind, value=source, **wait)
        prompt[id] = box("Show", value=[f"wait {id}", 0])
    return prompt


async def stop_at_some_time(job: Job, seconds: float) -> None:
    await asyncio.sleep(seconds)
    job.stop.set()


def check_nothing_is_left(here: World) -> None:
    assert not len(here.services.flights)
    here.services.cache.check()
    here.services.cache.clear()
    assert not len(here.services.cache), "an ended job still pins its results"
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("seed", range(25))
async def test_each_job_ends_as_if_it_had_been_alone(tmp_path, seed: int):
    rng = random.Random(seed)
    here = world(specs(), tmp_path)
    here.services.cache.max_bytes = rng.choice([0, 5_000, 10**9])
    kinds = [with_troubles(random_prompt(rng), rng) for _ in range(5)]
    jobs = [here.job(rng.choice(kinds)) for _ in range(16)]
    stops = [stop_at_some_time(job, rng.random() * 0.03) for job in jobs if rng.random() < 0.3]
    outcomes = await asyncio.wait_for(
        asyncio.gather(*(run_job(job, here.services) for job in jobs), *stops), 20
    )
    for job, outcome in zip(jobs, outcomes):
        if outcome.status == "interrupted":
            assert job.stop.is_set
            continue
        alone = world(specs(), tmp_path)
        wanted = await run_job(alone.job(job.valid.graph.prompt), alone.services)
        assert outcome.status == wanted.status
        if outcome.status == "success":
            assert outcome.outputs == wanted.outputs
    check_nothing_is_left(here)


async def test_who_waits_for_another_jobs_node_hears_how_far_it_is(tmp_path):
    gate = asyncio.Event()

    async def step_on(ctx: NodeContext, *, value: int = 0) -> int:
        await gate.wait()
        ctx.progress(1, 2)
        ctx.text("half")
        await asyncio.to_thread(ctx.preview, Image.new("RGB", (4, 4)))
        return value

    here = world([*specs(), spec_of(step_on, "StepOn", category="test")], tmp_path)
    prompt = {"1": box("StepOn", value=0), "2": box("Show", value=["1", 0])}
    renamed = {"a": prompt["1"], "b": box("Show", value=["a", 0])}
    jobs = [
        here.job(prompt),
        here.job(renamed),
        replace(here.job(prompt), extra_data={"preview_method": "none"}),
    ]
    running = [asyncio.create_task(run_job(job, here.services)) for job in jobs]
    stopped = asyncio.create_task(run_job(left := here.job(prompt), here.services))
    while len([one for one in here.events if isinstance(one, NodeStarted)]) < 4:
        await asyncio.sleep(0)
    left.stop.set()
    assert (await stopped).status == "interrupted"
    gate.set()
    outcomes = await asyncio.gather(*running)
    assert [outcome.status for outcome in outcomes] == ["success"] * 3
    leader, renaming, blind = (job.id for job in jobs)
    told = [one for one in here.events if isinstance(one, NodeProgress | NodePreview | NodeText)]
    news = {id: [type(one).__name__ for one in told if one.prompt_id == id] for id in (leader, renaming)}
    assert news[leader] == news[renaming] == ["NodeProgress", "NodeText", "NodePreview"]
    assert {one.node.node_id for one in told if one.prompt_id == renaming} == {"a"}
    assert {type(one) for one in told if one.prompt_id == blind} == {NodeProgress, NodeText}
    assert not [one for one in told if one.prompt_id == left.id]
    check_nothing_is_left(here)


@pytest.mark.parametrize("max_running", [1, 4])
async def test_a_queue_runs_no_more_jobs_than_it_may_and_in_its_order(tmp_path, max_running: int):
    here = world(specs(), tmp_path)
    queue = JobQueue(max_running)
    jobs = [
        here.job({"1": box("Doze", value=i, seconds=0.02), "2": box("Show", value=["1", 0])})
        for i in range(8)
    ]
    for job in jobs:
        queue.put(job)
    running: set[asyncio.Task] = set()
    most = 0
    while queue.remaining:
        while (job := queue.start_next()) is not None:
            running.add(asyncio.create_task(run_job(job, here.services), name=job.id))
        most = max(most, len(running))
        ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            queue.finish(task.get_name())
    assert most == max_running
    starts = [event.prompt_id for event in here.events if type(event).__name__ == "ExecutionStart"]
    assert starts == [job.id for job in jobs]
    if max_running == 1:
        owners = [event.prompt_id for event in here.events]
        assert owners == sorted(owners, key=starts.index)
