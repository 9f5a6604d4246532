import asyncio
import sqlite3
import threading
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
