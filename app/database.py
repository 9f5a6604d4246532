"""The server's SQLite file: one thread writes, one reads, and an older file is brought up to date."""

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
    """
    CREATE INDEX history_by_create_time ON history (coalesce(json_extract(summary, '$.create_time'), 0));
    """,
    """
    CREATE TABLE content (
        id INTEGER PRIMARY KEY,
        hash TEXT UNIQUE,
        size INTEGER NOT NULL
    );
    CREATE TABLE asset (
        id TEXT PRIMARY KEY,
        content_id INTEGER NOT NULL REFERENCES content (id),
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        path TEXT UNIQUE,
        mtime_ns INTEGER,
        is_gone INTEGER NOT NULL DEFAULT 0,
        loader_path TEXT,
        mime_type TEXT NOT NULL,
        user_metadata TEXT NOT NULL,
        metadata TEXT NOT NULL,
        preview_id TEXT,
        job_id TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        last_access_time INTEGER NOT NULL,
        deleted_at INTEGER
    );
    CREATE INDEX asset_by_content ON asset (content_id);
    CREATE INDEX asset_by_time ON asset (created_at, id);
    CREATE INDEX asset_by_job ON asset (job_id);
    CREATE TABLE asset_tag (
        asset_id TEXT NOT NULL REFERENCES asset (id),
        tag TEXT NOT NULL,
        automatic INTEGER NOT NULL,
        PRIMARY KEY (asset_id, tag)
    ) WITHOUT ROWID;
    CREATE INDEX asset_tag_by_tag ON asset_tag (tag);
    CREATE TABLE tag (name TEXT PRIMARY KEY) WITHOUT ROWID;
    """,
)


class Database:
    """`read` and `write` may be awaited from the event loop. A read sees every write that has returned.

    Each kind is done in the order of the calls, so that reading a long history holds up no write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = _Worker("database writer")
        self._reader = _Worker("database reader")

    async def open(self) -> None:
        await self._writer.call(lambda: self._open(self._writer))
        await self._reader.call(lambda: self._open(self._reader))

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def read(self, work: Callable[[sqlite3.Connection], R]) -> R:
        return await self._reader.call(lambda: work(self._reader.opened))

    async def write(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """All of it or, when it raises, nothing."""

        def transaction() -> R:
            with self._writer.opened as connection:
                return work(connection)

        return await self._writer.call(transaction)

    def _open(self, worker: _Worker) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            worker.connection = sqlite3.connect(self._path, timeout=30)
            worker.connection.execute("PRAGMA journal_mode = WAL")
            worker.connection.execute("PRAGMA synchronous = NORMAL")
            migrate(worker.connection)
        except (OSError, sqlite3.Error) as error:
            raise BadConfig(f"the database {self._path} cannot be opened: {error}") from None


class _Worker:
    """A thread and the connection that only it uses."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self.connection: sqlite3.Connection | None = None

    @property
    def opened(self) -> sqlite3.Connection:
        assert self.connection is not None, "the database is not open"
        return self.connection

    async def call(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        await self.call(lambda: self.connection.close() if self.connection is not None else None)
        await asyncio.to_thread(self._thread.shutdown)


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
