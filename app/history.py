"""What became of each prompt, kept in SQLite under the user directory. It knows no queue and no sockets.

One thread owns the connection; methods may be awaited from the event loop.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.json_text import encode

R = TypeVar("R")

# Each entry brings a database from its own index to the next; never edit one that was released.
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
)


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """`item` is the protocol's history object, `summary` and its `status` what the jobs API lists of it."""

    prompt_id: str
    status: str
    summary: dict[str, Any]
    item: dict[str, Any]


class History:
    def __init__(self, path: Path, keep: int = 10_000) -> None:
        self._path = path
        self._keep = keep
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        await self._run(self._open)

    async def close(self) -> None:
        await self._run(self._close)
        await asyncio.to_thread(self._thread.shutdown)

    async def add(self, row: HistoryRow) -> None:
        """A prompt id that comes again takes the place of its older self, at the end."""
        await self._run(lambda: self._add(row))

    async def newest(self, max_items: int | None = None, offset: int = -1) -> str:
        """A JSON object of items in completion order; `offset` -1 means the last `max_items`.

        It is put together from the stored texts, which may be many megabytes.
        """
        return await self._run(lambda: self._page(max_items, offset))

    async def item(self, prompt_id: str) -> dict[str, Any] | None:
        def read() -> dict[str, Any] | None:
            query = "SELECT item FROM history WHERE prompt_id = ?"
            found = self._database.execute(query, (prompt_id,)).fetchone()
            return None if found is None else json.loads(found[0])

        return await self._run(read)

    async def summaries(self, statuses: Iterable[str]) -> list[dict[str, Any]]:
        """In completion order. Items hold whole workflows, so a list of jobs does not read them."""
        wanted = tuple(statuses)
        marks = ",".join("?" * len(wanted))
        query = f"SELECT summary FROM history WHERE status IN ({marks}) ORDER BY sequence"

        def read() -> list[dict[str, Any]]:
            return [json.loads(summary) for (summary,) in self._database.execute(query, wanted)]

        return await self._run(read)

    async def delete(self, prompt_ids: Iterable[str]) -> None:
        ids = [(prompt_id,) for prompt_id in prompt_ids]
        await self._run(lambda: self._write("DELETE FROM history WHERE prompt_id = ?", ids))

    async def clear(self) -> None:
        await self._run(lambda: self._write("DELETE FROM history", [()]))

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @property
    def _database(self) -> sqlite3.Connection:
        assert self._connection is not None, "history is not open"
        return self._connection

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self._path, timeout=30)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        migrate(self._database)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _write(self, statement: str, rows: list[Any]) -> None:
        with self._database:
            self._database.executemany(statement, rows)

    def _add(self, row: HistoryRow) -> None:
        texts = (encode(row.summary), encode(row.item))
        with self._database:
            self._database.execute("DELETE FROM history WHERE prompt_id = ?", (row.prompt_id,))
            columns = "prompt_id, status, summary, item"
            values = (row.prompt_id, row.status, *texts)
            self._database.execute(f"INSERT INTO history ({columns}) VALUES (?, ?, ?, ?)", values)
            oldest_kept = "SELECT sequence FROM history ORDER BY sequence DESC LIMIT 1 OFFSET ?"
            self._database.execute(f"DELETE FROM history WHERE sequence <= ({oldest_kept})", (self._keep,))

    def _page(self, max_items: int | None, offset: int) -> str:
        if offset < 0 and max_items is None:
            offset = 0
        values: tuple[int | None, ...]
        if offset < 0:
            newest = "SELECT * FROM history ORDER BY sequence DESC LIMIT ?"
            query, values = f"SELECT prompt_id, item FROM ({newest}) ORDER BY sequence", (max_items,)
        else:
            query = "SELECT prompt_id, item FROM history ORDER BY sequence LIMIT ? OFFSET ?"
            values = (-1 if max_items is None else max_items, offset)
        found = self._database.execute(query, values)
        return "{" + ", ".join(f"{json.dumps(prompt_id)}: {item}" for prompt_id, item in found) + "}"


def migrate(database: sqlite3.Connection) -> None:
    """Bring an older database up to date; refuse one that a newer program wrote."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise RuntimeError(
            f"the history database has version {version}, this program knows up to {len(MIGRATIONS)}: "
            "start a newer Treadle or choose another --user-directory"
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        database.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
