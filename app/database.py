"""The server's SQLite file: one thread owns the connection, and an older file is brought up to date."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from app.config import BadConfig

R = TypeVar("R")

# Each entry brings a file from its own index to the next; never edit one that was released.
MIGRATIONS = (
    """
    CREATE TABLE history (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        prompt_id TEXT NOT NULL UNIQUE,
        status TEXT NOT NULL,
        summary TEXT NOT NULL,
        item TEXT NOT NULL
    );
    CREATE INDEX history_by_status ON history (status, sequence);
    """,
    """
    CREATE TABLE queue (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        prompt_id TEXT NOT NULL UNIQUE,
        number NUMERIC NOT NULL,
        counted INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        body TEXT NOT NULL
    );
    CREATE TRIGGER ended AFTER INSERT ON history BEGIN
        DELETE FROM queue WHERE prompt_id = NEW.prompt_id;
    END;
    """,
)


class Database:
    """`read` and `write` may be awaited from the event loop; they are done in the order of the calls."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        await self._in_thread(self._open)

    async def close(self) -> None:
        await self._in_thread(self._close)
        await asyncio.to_thread(self._thread.shutdown)

    async def read(self, work: Callable[[sqlite3.Connection], R]) -> R:
        return await self._in_thread(lambda: work(self._opened))

    async def write(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """All of it or, when it raises, nothing."""

        def transaction() -> R:
            with self._opened as connection:
                return work(connection)

        return await self._in_thread(transaction)

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._connection is not None, f"{self._path} is not open"
        return self._connection

    async def _in_thread(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._path, timeout=30)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            migrate(self._connection)
        except (OSError, sqlite3.Error) as error:
            raise BadConfig(f"the database {self._path} cannot be opened: {error}") from None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def migrate(connection: sqlite3.Connection) -> None:
    """Refuses a file that a newer program wrote."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise BadConfig(
            f"the database has version {version}, this program knows up to {len(MIGRATIONS)}: "
            "start a newer Treadle or choose another --user-directory"
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
