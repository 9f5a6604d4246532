import asyncio
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

from app.config import BadConfig
from app.database import MIGRATIONS, Database, migrate
from app.history import History, HistoryRow


async def test_what_was_written_survives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "treadle.sqlite"
    first = Database(path)
    await first.open()
    await History(first).add(HistoryRow("a", "completed", {}, {"id": "a"}))
    await first.close()
    second = Database(path)
    await second.open()
    assert await History(second).item("a") == {"id": "a"}
    await second.close()


async def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO history (prompt_id, status, summary, item) VALUES ('a', '', '', '')")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(sqlite3.OperationalError):
        await database.write(half)
    assert await database.read(lambda c: c.execute("SELECT count(*) FROM history").fetchone()) == (0,)
    await database.close()


def test_a_file_is_brought_up_to_date_once() -> None:
    connection = sqlite3.connect(":memory:")
    migrate(connection)
    migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()


async def test_a_file_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "treadle.sqlite"
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    database = Database(path)
    with pytest.raises(BadConfig, match="newer Treadle"):
        await database.open()
    await database.close()
    again = sqlite3.connect(path)
    assert again.execute("SELECT name FROM sqlite_master").fetchall() == []
    again.close()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "treadle.sqlite"
    path.write_bytes(b"not a database at all" * 100)
    database = Database(path)
    with pytest.raises(BadConfig, match=r"treadle\.sqlite cannot be opened"):
        await database.open()
    await database.close()


async def test_a_long_read_holds_up_no_write_and_a_later_read_sees_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    go_on = threading.Event()
    reading = asyncio.create_task(database.read(lambda _: go_on.wait(10)))
    await asyncio.wait_for(History(database).add(HistoryRow("a", "completed", {}, {"id": "a"})), 5)
    assert not reading.done()
    go_on.set()
    assert await reading
    assert await History(database).item("a") == {"id": "a"}
    await database.close()


async def test_writes_that_come_together_are_kept_in_order_and_one_that_fails_takes_none_along(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    begin, commits = threading.Event(), []
    first = asyncio.create_task(database.write(lambda _: begin.wait(10)))
    await asyncio.sleep(0)

    def row(name: str, connection: sqlite3.Connection) -> int:
        if name == "5":
            connection.set_trace_callback(lambda said: commits.append(said) if said == "COMMIT" else None)
        columns, values = "prompt_id, status, summary, item", (name, "", "{}", "{}")
        connection.execute(f"INSERT INTO history ({columns}) VALUES (?, ?, ?, ?)", values)
        return connection.execute("SELECT count(*) FROM history").fetchone()[0]

    together = [asyncio.create_task(database.write(partial(row, str(number)))) for number in range(20)]
    await asyncio.sleep(0)
    begin.set()
    assert await asyncio.gather(*together) == list(range(1, 21))
    assert len(commits) == 1, "they share a transaction"
    again = [asyncio.create_task(database.write(partial(row, str(number)))) for number in (20, 3, 21)]
    outcomes = await asyncio.gather(*again, return_exceptions=True)
    assert [outcomes[0], outcomes[2]] == [21, 22]
    assert isinstance(outcomes[1], sqlite3.IntegrityError)
    assert await first
    rows = await database.read(
        lambda c: c.execute("SELECT prompt_id FROM history ORDER BY sequence").fetchall()
    )
    assert rows == [(str(number),) for number in range(22)]
    await database.close()


async def test_a_write_that_nobody_waits_for_any_more_is_not_begun(tmp_path: Path) -> None:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    begin, begun = threading.Event(), []
    first = asyncio.create_task(database.write(lambda _: begin.wait(10)))
    given_up = asyncio.create_task(database.write(lambda _: begun.append("it")))
    await asyncio.sleep(0.05)
    given_up.cancel()
    await asyncio.sleep(0)
    begin.set()
    await first
    await database.close()
    assert begun == []


async def test_what_was_asked_for_before_closing_is_written(tmp_path: Path) -> None:
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    adding = [
        asyncio.create_task(History(database).add(HistoryRow(str(i), "completed", {}, {})))
        for i in range(200)
    ]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*adding)
    file = sqlite3.connect(tmp_path / "treadle.sqlite")
    assert file.execute("SELECT count(*) FROM history").fetchone() == (200,)
    file.close()
