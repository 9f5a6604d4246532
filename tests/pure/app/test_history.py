import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app import job_summary
from app.database import Database
from app.history import History, HistoryRow


def row(prompt_id: str, status: str = "completed", **item: Any) -> HistoryRow:
    return HistoryRow(prompt_id, status, {"id": prompt_id}, {"id": prompt_id, **item})


@pytest.fixture
async def history(tmp_path: Path) -> AsyncIterator[History]:
    database = Database(tmp_path / "user" / "treadle.sqlite")
    await database.open()
    yield History(database, keep=100)
    await database.close()


async def test_items_come_back_in_completion_order(history: History) -> None:
    for name in "cab":
        await history.add(row(name))
    assert list(json.loads(await history.newest())) == ["c", "a", "b"]
    assert await history.item("a") == {"id": "a"}
    assert await history.item("nobody") is None


async def test_max_items_means_the_newest_and_an_offset_counts_from_the_oldest(history: History) -> None:
    for number in range(10):
        await history.add(row(str(number)))
    assert list(json.loads(await history.newest(3))) == ["7", "8", "9"]
    assert list(json.loads(await history.newest(3, 0))) == ["0", "1", "2"]
    assert list(json.loads(await history.newest(3, 8))) == ["8", "9"]
    assert list(json.loads(await history.newest(None, 8))) == ["8", "9"]
    assert json.loads(await history.newest(0)) == {}


async def test_a_prompt_id_that_comes_again_takes_its_place_at_the_end(history: History) -> None:
    for name, value in (("a", 1), ("b", 2), ("a", 3)):
        await history.add(row(name, value=value))
    assert list(json.loads(await history.newest())) == ["b", "a"]
    assert await history.item("a") == {"id": "a", "value": 3}


async def test_deleting_and_clearing(history: History) -> None:
    for name in "abc":
        await history.add(row(name))
    await history.delete(["b", "nobody"])
    assert list(json.loads(await history.newest())) == ["a", "c"]
    await history.clear()
    assert json.loads(await history.newest()) == {}


async def test_summaries_are_chosen_by_status(history: History) -> None:
    for name, status in (("a", "failed"), ("b", "completed"), ("c", "failed")):
        await history.add(row(name, status))
    assert await history.summaries(["failed"]) == (2, [{"id": "a"}, {"id": "c"}])
    assert await history.summaries([]) == (0, [])


async def test_pages_of_summaries_are_those_of_the_whole_sorted_list(history: History) -> None:
    chance = random.Random(3)
    jobs: list[dict[str, Any]] = []
    for number in range(60):
        job: dict[str, Any] = {"id": str(number), "create_time": chance.randint(1, 9)}
        if number % 3:
            job |= {"execution_start_time": 5, "execution_end_time": 5 + chance.randint(0, 4)}
        if number % 4:
            job["workflow_id"] = chance.choice("ab")
        jobs.append(job)
        await history.add(HistoryRow(job["id"], "completed", job, {}))
    for by in ("created_at", "execution_duration"):
        for descending in (False, True):
            for workflow_id in (None, "a", "nobody"):
                chosen = [job for job in jobs if workflow_id in (None, job.get("workflow_id"))]
                expected = job_summary.ordered(chosen, by, descending)[:7]
                found = await history.summaries(
                    ["completed"], by=by, descending=descending, workflow_id=workflow_id, limit=7
                )
                assert found == (len(chosen), expected)


async def test_only_the_newest_are_kept(history: History) -> None:
    for number in range(105):
        await history.add(row(str(number)))
    kept = list(json.loads(await history.newest()))
    assert (len(kept), kept[0], kept[-1]) == (100, "5", "104")
