from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.backlog import Backlog
from app.database import Database
from app.graph.parse import Graph
from app.graph.validate import ValidGraph
from app.history import History, HistoryRow
from app.queue import Job

VALID = ValidGraph(Graph({}, {"1": {"class_type": "Show", "inputs": {}}}), ("1",), {})


def job(id: str, number: float = 0) -> Job:
    return Job(id, number, VALID, "me", {"client_id": "me"}, {"api_key_comfy_org": "secret"})


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    yield database
    await database.close()


async def left(database: Database, forget: bool = False) -> list[tuple[str, int]]:
    """What the next process finds: ids and attempts."""
    backlog = Backlog(database, Path(str(database._path) + ".lock"))
    found = await backlog.open(forget)
    await backlog.close()
    return [(stored.id, stored.attempts) for stored in found]


async def backlog_of(database: Database, *jobs: Job) -> Backlog:
    backlog = Backlog(database, Path(str(database._path) + ".lock"))
    assert await backlog.open(forget=False) == []
    for counted, one in enumerate(jobs, start=1):
        await backlog.put(one, counted)
    return backlog


async def test_the_next_process_finds_prompts_in_the_order_of_their_start(database: Database) -> None:
    backlog = await backlog_of(database, job("b", 1), job("a", 1), job("front", -2), job("last", 2.5))
    await backlog.close()
    assert await left(database) == [("front", 0), ("b", 0), ("a", 0), ("last", 0)]


async def test_a_prompt_comes_back_as_it_was_but_without_its_secrets(database: Database) -> None:
    await (await backlog_of(database, job("a", 3))).close()
    backlog = Backlog(database, Path(str(database._path) + ".lock"))
    (stored,) = await backlog.open(forget=False)
    assert stored.as_json() == job("a", 3).as_json()
    assert (stored.client_id, stored.counted) == ("me", 1)
    await backlog.close()
    text = await database.read(lambda connection: connection.execute("SELECT body FROM queue").fetchone())
    assert "secret" not in text[0]


async def test_starts_count_unless_they_were_given_up(database: Database) -> None:
    backlog = await backlog_of(database, job("a"), job("b"), job("c"))
    await backlog.started(["a", "b"])
    await backlog.given_up(["b"])
    await backlog.close()
    assert await left(database) == [("a", 1), ("b", 0), ("c", 0)]


async def test_what_ended_or_was_removed_does_not_come_back(database: Database) -> None:
    backlog = await backlog_of(database, job("a"), job("b"), job("c"))
    await History(database).add(HistoryRow("a", "completed", {}, {}))
    await backlog.remove(["c", "nobody"])
    await backlog.close()
    assert await left(database) == [("b", 0)]


async def test_a_queue_can_be_forgotten(database: Database) -> None:
    await (await backlog_of(database, job("a"))).close()
    assert await left(database, forget=True) == []
    assert await left(database) == []


async def test_a_second_process_neither_takes_nor_adds_prompts(database: Database, tmp_path: Path) -> None:
    first = await backlog_of(database, job("a"))
    beside = Database(tmp_path / "treadle.sqlite")
    await beside.open()
    second = await backlog_of(beside, job("b"))
    await second.close()
    await beside.close()
    await first.close()
    assert await left(database) == [("a", 0)]


async def test_a_row_that_cannot_be_read_keeps_no_other_from_coming_back(database: Database) -> None:
    await (await backlog_of(database, job("a"), job("b"))).close()
    broken = "UPDATE queue SET body = '{' WHERE prompt_id = 'a'"
    await database.write(lambda connection: connection.execute(broken))
    assert await left(database) == [("b", 0)]
