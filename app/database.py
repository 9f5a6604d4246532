"""The server's SQLite file: one thread writes, one reads, and an older file is brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.config import BadConfig
from app.database_thread import DatabaseThread

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
        self._writer = DatabaseThread("database writer", calls_at_once=64)
        # so that no answer waits for a longer one behind it
        self._reader = DatabaseThread("database reader", calls_at_once=1)

    async def open(self) -> None:
        await self._writer.open(self._connected)
        await self._reader.open(self._connected)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def read(self, work: Callable[[sqlite3.Connection], R]) -> R:
        return await self._reader.call(work)

    async def write(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """All of it or, when it raises, nothing. It returns when that is committed.

        Writes that come together share a transaction. When one of them fails, the others' `work` is undone
        and runs again.
        """
        return await self._writer.call(work)

    def _connected(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=30)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            migrate(connection)
        except (OSError, sqlite3.Error) as error:
            raise BadConfig(f"the database {self._path} cannot be opened: {error}") from None
        return connection


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
