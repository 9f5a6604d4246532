"""What became of each prompt, in the database. It knows no queue and no sockets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.database import Database
from app.json_text import encode

_SORT_KEYS = {
    "created_at": "coalesce(json_extract(summary, '$.create_time'), 0)",
    "execution_duration": (
        "coalesce(json_extract(summary, '$.execution_end_time'), 0)"
        " - coalesce(json_extract(summary, '$.execution_start_time'), 0)"
    ),
}


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """`item` is the protocol's history object, `summary` and its `status` what the jobs API lists of it."""

    prompt_id: str
    status: str
    summary: dict[str, Any]
    item: dict[str, Any]


class History:
    """Keeps the newest `keep` rows."""

    def __init__(self, database: Database, keep: int = 10_000) -> None:
        self._database = database
        self._keep = keep

    async def add(self, row: HistoryRow) -> None:
        """A prompt id that comes again takes the place of its older self, at the end."""

        def insert(connection: sqlite3.Connection) -> None:
            texts = (encode(row.summary), encode(row.item))
            connection.execute("DELETE FROM history WHERE prompt_id = ?", (row.prompt_id,))
            columns = "prompt_id, status, summary, item"
            values = (row.prompt_id, row.status, *texts)
            connection.execute(f"INSERT INTO history ({columns}) VALUES (?, ?, ?, ?)", values)
            newest_dropped = "SELECT sequence FROM history ORDER BY sequence DESC LIMIT 1 OFFSET ?"
            connection.execute(f"DELETE FROM history WHERE sequence <= ({newest_dropped})", (self._keep,))

        await self._database.write(insert)

    async def newest(self, max_items: int | None = None, offset: int = -1) -> str:
        """A JSON object of items in completion order; `offset` -1 means the last `max_items`.

        It is put together from the stored texts, which may be many megabytes.
        """

        def read(connection: sqlite3.Connection) -> str:
            found = connection.execute(*_page(max_items, offset))
            return "{" + ", ".join(f"{json.dumps(prompt_id)}: {item}" for prompt_id, item in found) + "}"

        return await self._database.read(read)

    async def item(self, prompt_id: str) -> dict[str, Any] | None:
        def read(connection: sqlite3.Connection) -> dict[str, Any] | None:
            query = "SELECT item FROM history WHERE prompt_id = ?"
            found = connection.execute(query, (prompt_id,)).fetchone()
            return None if found is None else json.loads(found[0])

        return await self._database.read(read)

    async def summaries(
        self,
        statuses: Iterable[str],
        *,
        by: str = "created_at",
        descending: bool = False,
        workflow_id: str | None = None,
        limit: int | None = None,
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many there are, and the first `limit` of them. Equals stay in completion order.

        Items hold whole workflows, so a list of jobs does not read them.
        """
        wanted: list[Any] = list(statuses)
        # the plus keeps SQLite from choosing by status, of which there are few, instead of by the order
        where = f"+status IN ({','.join('?' * len(wanted))})"
        if workflow_id is not None:
            where += " AND json_extract(summary, '$.workflow_id') = ?"
            wanted.append(workflow_id)
        order = f"{_SORT_KEYS[by]} {'DESC' if descending else 'ASC'}, sequence"
        page = f"SELECT summary FROM history WHERE {where} ORDER BY {order} LIMIT ?"

        def read(connection: sqlite3.Connection) -> tuple[int, list[dict[str, Any]]]:
            (total,) = connection.execute(f"SELECT count(*) FROM history WHERE {where}", wanted).fetchone()
            found = connection.execute(page, [*wanted, -1 if limit is None else min(limit, total)])
            return total, [json.loads(summary) for (summary,) in found]

        return await self._database.read(read)

    async def delete(self, prompt_ids: Iterable[str]) -> None:
        ids = [(prompt_id,) for prompt_id in prompt_ids]
        statement = "DELETE FROM history WHERE prompt_id = ?"
        await self._database.write(lambda connection: connection.executemany(statement, ids))

    async def clear(self) -> None:
        await self._database.write(lambda connection: connection.execute("DELETE FROM history"))


def _page(max_items: int | None, offset: int) -> tuple[str, tuple[int, ...]]:
    limit = -1 if max_items is None else max_items
    if offset >= 0 or max_items is None:
        query = "SELECT prompt_id, item FROM history ORDER BY sequence LIMIT ? OFFSET ?"
        return query, (limit, max(offset, 0))
    newest = "SELECT * FROM history ORDER BY sequence DESC LIMIT ?"
    return f"SELECT prompt_id, item FROM ({newest}) ORDER BY sequence", (limit,)
