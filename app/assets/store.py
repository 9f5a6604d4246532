"""The assets in the database: names that owners have for contents, and the files that hold those.

It opens no file; whoever calls has looked at the disk. A deleted name is only hidden, its file stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.assets import writing
from app.assets.filters import Filters, Window, prepare
from app.assets.rows import EVERYBODY, SELECT, Asset, FileFacts, Named, a_file_of, asset_of, find
from app.database import Database


@dataclass(frozen=True, slots=True)
class Listing:
    assets: Sequence[Asset]
    total: int
    has_more: bool
    cursor: str | None


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the database believes of a file."""

    id: str
    path: str
    size: int
    mtime_ns: int
    hash: str | None
    is_gone: int


class Assets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, asset_id: str, owner: str) -> Asset | None:
        return await self._database.read(lambda connection: find(connection, asset_id, owner))

    async def listed(self, filters: Filters, window: Window) -> Listing:
        """Raises `InvalidCursor`."""
        where, values = filters.where()
        beyond, position = window.beyond()
        joined = "FROM asset JOIN content ON content.id = asset.content_id"
        offset = 0 if window.after is not None else window.offset

        def read(connection: sqlite3.Connection) -> Listing:
            prepare(connection)
            (total,) = connection.execute(f"SELECT count(*) {joined} WHERE {where}", values).fetchone()
            query = f"{SELECT} WHERE {where} AND {beyond} ORDER BY {window.order()} LIMIT ? OFFSET ?"
            found = connection.execute(query, [*values, *position, window.limit + 1, offset]).fetchall()
            assets = [asset_of(row) for row in found[: window.limit]]
            has_more = len(found) > window.limit
            last = assets[-1] if assets and has_more else None
            cursor = None if last is None else window.cursor(getattr(last, window.sort), last.id)
            return Listing(assets, total, has_more, cursor)

        return await self._database.read(read)

    async def file_with(self, hash: str) -> str | None:
        """The path of a file with this content, as far as the database knows."""
        query = f"""
            SELECT {a_file_of("asset")} AS file FROM asset JOIN content ON content.id = asset.content_id
            WHERE content.hash = ? AND file IS NOT NULL LIMIT 1
        """

        def read(connection: sqlite3.Connection) -> str | None:
            found = connection.execute(query, (hash,)).fetchone()
            return None if found is None else str(found[0])

        return await self._database.read(read)

    async def add_name(self, hash: str, named: Named) -> Asset:
        """One more name for a content that is known."""

        def write(connection: sqlite3.Connection) -> Asset:
            asset_id = writing.add_name(connection, hash, named)
            return _found(connection, asset_id, named.owner)

        return await self._database.write(write)

    async def add_file(self, facts: FileFacts, named: Named) -> tuple[Asset, bool]:
        """The asset of a file, and whether its content is new. A file that is known keeps its asset."""

        def write(connection: sqlite3.Connection) -> tuple[Asset, bool]:
            asset_id, is_new = writing.add_file(connection, facts, named)
            return _found(connection, asset_id, named.owner), is_new

        return await self._database.write(write)

    async def add_found(self, found: Sequence[tuple[FileFacts, Named]]) -> int:
        """Files that a scan met; how many of them have a content that is new."""

        def write(connection: sqlite3.Connection) -> int:
            return sum(writing.add_file(connection, facts, named)[1] for facts, named in found)

        return await self._database.write(write)

    async def change(
        self,
        asset_id: str,
        owner: str,
        columns: Mapping[str, str],
        user_metadata: Mapping[str, Any] | None = None,
    ) -> Asset | None:
        """`columns` of name, mime_type and preview_id. The file name in the metadata is the server's own."""

        def write(connection: sqlite3.Connection) -> Asset | None:
            asset = find(connection, asset_id, owner)
            if asset is None:
                return None
            changes: dict[str, Any] = dict(columns)
            if user_metadata is not None:
                own = {key: asset.user_metadata[key] for key in ("filename",) if key in asset.user_metadata}
                changes["user_metadata"] = json.dumps({**user_metadata, **own})
            writing.change(connection, asset_id, changes)
            return _found(connection, asset_id, owner)

        return await self._database.write(write)

    async def touch(self, asset_id: str) -> None:
        """Its content was asked for."""
        statement = "UPDATE asset SET last_access_time = ? WHERE id = ?"
        await self._database.write(
            lambda connection: connection.execute(statement, (writing.now(), asset_id))
        )

    async def delete(self, asset_id: str, owner: str) -> bool:
        """Whether there was one."""

        def write(connection: sqlite3.Connection) -> bool:
            statement = (
                "UPDATE asset SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL AND owner IN (?, ?)"
            )
            values = (writing.now(), asset_id, EVERYBODY, owner)
            return connection.execute(statement, values).rowcount == 1

        return await self._database.write(write)

    # what a scan asks and says

    async def files(self) -> list[KnownFile]:
        query = """
            SELECT asset.id, path, size, mtime_ns, hash, is_gone <> 0
            FROM asset JOIN content ON content.id = content_id WHERE path IS NOT NULL
        """

        def read(connection: sqlite3.Connection) -> list[KnownFile]:
            rows = connection.execute(query).fetchall()
            return [KnownFile(*row) for row in rows]

        return await self._database.read(read)

    async def note_files(self, gone: Sequence[str], back: Sequence[str]) -> None:
        """Assets, by id, whose file is not there any more, or is there again as it was."""
        await self._database.write(lambda connection: writing.note_files(connection, gone, back))

    async def note_contents(self, facts: Sequence[FileFacts]) -> None:
        """What reading files told: their hash, their size as pictures."""
        await self._database.write(lambda connection: writing.note_contents(connection, facts))


def _found(connection: sqlite3.Connection, asset_id: str, owner: str) -> Asset:
    asset = find(connection, asset_id, owner)
    assert asset is not None, f"asset {asset_id} was just written"
    return asset
