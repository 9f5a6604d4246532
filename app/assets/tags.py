"""Tags of assets in the database: who wears which, and how often each is worn."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.assets import writing
from app.assets.filters import Filters, prepare
from app.assets.rows import find
from app.database import Database

_ORDERS = {"count_desc": "count DESC, name", "name_asc": "name"}
TAG_ORDERS = tuple(_ORDERS)


@dataclass(frozen=True, slots=True)
class TagChange:
    """`done` were added or removed, `idle` were there, or absent, already; `total` is what is worn now."""

    done: tuple[str, ...]
    idle: tuple[str, ...]
    total: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagCounts:
    counts: Mapping[str, int]
    total: int


class Tags:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, asset_id: str, owner: str, tags: Sequence[str]) -> TagChange | None:
        """None when the owner has no such asset."""

        def write(connection: sqlite3.Connection) -> TagChange | None:
            asset = find(connection, asset_id, owner)
            if asset is None:
                return None
            new = tuple(tag for tag in tags if tag not in asset.tags)
            writing.add_tags(connection, asset_id, new, automatic=False)
            idle = tuple(tag for tag in tags if tag in asset.tags)
            return TagChange(new, idle, tuple(sorted({*asset.tags, *new})))

        return await self._database.write(write)

    async def remove(self, asset_id: str, owner: str, tags: Sequence[str]) -> TagChange | None:
        def write(connection: sqlite3.Connection) -> TagChange | None:
            asset = find(connection, asset_id, owner)
            if asset is None:
                return None
            worn = tuple(tag for tag in tags if tag in asset.tags)
            statement = "DELETE FROM asset_tag WHERE asset_id = ? AND tag = ?"
            connection.executemany(statement, [(asset_id, tag) for tag in worn])
            idle = tuple(tag for tag in tags if tag not in asset.tags)
            return TagChange(worn, idle, tuple(tag for tag in asset.tags if tag not in worn))

        return await self._database.write(write)

    async def know(self, names: Sequence[str]) -> None:
        """They are listed from now on, worn or not."""
        statement = "INSERT OR IGNORE INTO tag (name) VALUES (?)"
        await self._database.write(
            lambda connection: connection.executemany(statement, [(name,) for name in names])
        )

    async def counts(
        self, filters: Filters, prefix: str, with_unused: bool, order: str, limit: int, offset: int
    ) -> TagCounts:
        """How many of the assets that the filters let through wear each tag."""
        where, values = filters.where()
        counted = f"""
            SELECT tag.name AS name, count(asset.id) AS count FROM tag
            LEFT JOIN asset_tag ON asset_tag.tag = tag.name
            LEFT JOIN asset ON asset.id = asset_tag.asset_id AND asset.id IN (
                SELECT asset.id FROM asset JOIN content ON content.id = asset.content_id WHERE {where})
            WHERE substr(tag.name, 1, length(?)) = ?
            GROUP BY tag.name HAVING count > 0 OR ?
        """
        values += [prefix, prefix, with_unused]

        def read(connection: sqlite3.Connection) -> TagCounts:
            prepare(connection)
            (total,) = connection.execute(f"SELECT count(*) FROM ({counted})", values).fetchone()
            page = f"SELECT name, count FROM ({counted}) ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
            return TagCounts(dict(connection.execute(page, [*values, limit, offset])), total)

        return await self._database.read(read)
