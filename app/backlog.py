"""Accepted prompts that have not ended, on disk, so that a process that dies loses none of them.

A prompt leaves when its history row is written, in the same transaction. It judges and runs nothing.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.database import Database
from app.json_text import encode
from app.queue import Job

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class StoredPrompt:
    """`attempts` counts the times that a process died while this ran; `counted` is how far numbers were."""

    id: str
    number: float
    counted: int
    attempts: int
    prompt: dict[str, Any]
    outputs: list[str]
    client_id: str | None
    extra_data: dict[str, Any]

    def as_json(self) -> list[Any]:
        """As `Job.as_json`."""
        return [self.number, self.id, self.prompt, self.extra_data, self.outputs]


class Backlog:
    """One process at a time keeps its queue in a user directory; that of a second one ends with it."""

    def __init__(self, database: Database, lock: Path) -> None:
        self._database = database
        self._lock_path = lock
        self._lock: sqlite3.Connection | None = None

    async def open(self, forget: bool) -> list[StoredPrompt]:
        """What an earlier process left, in the order of its start; nothing after forgetting it."""
        if not await self._database.read(lambda _: self._owned()):
            log.warning("another server uses %s; the queue of this one ends with it", self._lock_path.parent)
            return []
        if forget:
            await self._database.write(lambda connection: connection.execute("DELETE FROM queue"))
        return await self._database.read(_stored)

    async def close(self) -> None:
        await self._database.read(lambda _: self._lock.close() if self._lock else None)

    async def put(self, job: Job, counted: int) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            number, prompt_id, prompt, extra_data, outputs = job.as_json()
            body = {
                "prompt": prompt,
                "outputs": outputs,
                "client_id": job.client_id,
                "extra_data": extra_data,
            }
            columns = "prompt_id, number, counted, body"
            statement = f"INSERT OR REPLACE INTO queue ({columns}) VALUES (?, ?, ?, ?)"
            connection.execute(statement, (prompt_id, number, counted, encode(body)))

        if self._lock is not None:
            await self._database.write(insert)

    async def started(self, prompt_ids: Iterable[str]) -> None:
        """Before they run: should the process die of one, the next process knows."""
        await self._change("UPDATE queue SET attempts = attempts + 1 WHERE prompt_id = ?", prompt_ids)

    async def given_up(self, prompt_ids: Iterable[str]) -> None:
        """These were stopped on purpose, so their start does not count."""
        await self._change("UPDATE queue SET attempts = max(attempts - 1, 0) WHERE prompt_id = ?", prompt_ids)

    async def remove(self, prompt_ids: Iterable[str]) -> None:
        await self._change("DELETE FROM queue WHERE prompt_id = ?", prompt_ids)

    async def _change(self, statement: str, prompt_ids: Iterable[str]) -> None:
        rows = [(prompt_id,) for prompt_id in prompt_ids]
        if rows and self._lock is not None:
            await self._database.write(lambda connection: connection.executemany(statement, rows))

    def _owned(self) -> bool:
        """A locked database file is the one lock that every system takes away from a process that dies."""
        lock = sqlite3.connect(self._lock_path, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            return False
        self._lock = lock
        return True


def _stored(connection: sqlite3.Connection) -> list[StoredPrompt]:
    columns = "prompt_id, number, counted, attempts, body"
    found = []
    for *row, body in connection.execute(f"SELECT {columns} FROM queue ORDER BY number, sequence"):
        try:
            found.append(StoredPrompt(*row, **json.loads(body)))
        except (ValueError, TypeError) as error:
            # the others must come in all the same; the row stays for whoever can read it
            log.error("the stored prompt %s cannot be read: %s", row[0], error)
    return found
