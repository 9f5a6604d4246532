"""Changes to the assets, each within a transaction of its caller."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.assets.places import MISSING, UNKNOWN_TYPE
from app.assets.rows import FileFacts, Named


def now() -> int:
    return time.time_ns() // 1000


def add_name(connection: sqlite3.Connection, hash: str, named: Named) -> str:
    (content_id,) = connection.execute("SELECT id FROM content WHERE hash = ?", (hash,)).fetchone()
    return _add(connection, content_id, named, None)


def add_file(connection: sqlite3.Connection, facts: FileFacts, named: Named) -> tuple[str, bool]:
    """The id, and whether the content is new."""
    known = connection.execute(
        """
        SELECT asset.id, content_id, size, mtime_ns, hash, deleted_at
        FROM asset JOIN content ON content.id = content_id WHERE path = ?
        """,
        (facts.path,),
    ).fetchone()
    if known is None:
        content_id, is_new = _content(connection, facts)
        added = _add(connection, content_id, named, facts)
        _mark_missing(connection, () if is_new else (content_id,))
        return added, is_new
    asset_id, content_id, size, mtime_ns, hash, deleted_at = known
    if facts.hash is not None:
        is_same = facts.hash == hash
    else:
        is_same = (size, mtime_ns) == (facts.size, facts.mtime_ns)
    if deleted_at is None and (is_same or hash is None):
        return asset_id, _renew(connection, asset_id, content_id, named, facts)
    # a name of what was there before gives way to one of the file that is there now
    connection.execute("UPDATE asset SET path = NULL WHERE id = ?", (asset_id,))
    new_content_id, is_new = (content_id, False) if is_same else _content(connection, facts)
    added = _add(connection, new_content_id, named, facts)
    if hash is None:
        _remove(connection, asset_id)
    _mark_missing(connection, (content_id, new_content_id))
    return added, is_new


def change(connection: sqlite3.Connection, asset_id: str, columns: Mapping[str, Any]) -> None:
    changes = {**columns, "updated_at": now()}
    sets = ", ".join(f"{column} = ?" for column in changes)
    connection.execute(f"UPDATE asset SET {sets} WHERE id = ?", (*changes.values(), asset_id))


def add_tags(connection: sqlite3.Connection, asset_id: str, tags: Iterable[str], automatic: bool) -> None:
    tags = list(tags)
    connection.executemany("INSERT OR IGNORE INTO tag (name) VALUES (?)", [(tag,) for tag in tags])
    rows = [(asset_id, tag, automatic) for tag in tags]
    connection.executemany(
        "INSERT OR IGNORE INTO asset_tag (asset_id, tag, automatic) VALUES (?, ?, ?)", rows
    )


def note_files(connection: sqlite3.Connection, gone: Sequence[str], back: Sequence[str]) -> None:
    """Without its file, an asset that nobody has hashed is nothing at all; the others are marked."""
    query = "SELECT content_id, hash FROM asset JOIN content ON content.id = content_id WHERE asset.id = ?"
    contents: set[int] = set()
    for is_gone, asset_ids in ((1, gone), (0, back)):
        for asset_id in asset_ids:
            # a file may have been noted by another road since somebody looked
            for content_id, hash in connection.execute(query, (asset_id,)).fetchall():
                contents.add(content_id)
                if is_gone and hash is None:
                    _remove(connection, asset_id)
                else:
                    connection.execute("UPDATE asset SET is_gone = ? WHERE id = ?", (is_gone, asset_id))
    _mark_missing(connection, contents)


def note_contents(connection: sqlite3.Connection, facts: Sequence[FileFacts]) -> None:
    for one in facts:
        row = connection.execute("SELECT id, content_id FROM asset WHERE path = ?", (one.path,)).fetchone()
        if row is None:
            continue
        if one.metadata:
            connection.execute(
                "UPDATE asset SET metadata = ? WHERE id = ?", (json.dumps(one.metadata), row[0])
            )
        if one.hash is not None:
            content_id, _ = _content(connection, one)
            changed = (content_id, one.mtime_ns, row[0])
            connection.execute(
                "UPDATE asset SET content_id = ?, mtime_ns = ?, is_gone = 0 WHERE id = ?", changed
            )
            _drop_unused(connection, row[1])
            _mark_missing(connection, (row[1], content_id))


def _mark_missing(connection: sqlite3.Connection, content_ids: Iterable[int]) -> None:
    """Names of contents that have no file left carry a tag that says so."""
    has_file = "SELECT 1 FROM asset WHERE content_id = ? AND path IS NOT NULL AND NOT is_gone LIMIT 1"
    mark = (
        "INSERT OR IGNORE INTO asset_tag (asset_id, tag, automatic)"
        " SELECT id, ?, 1 FROM asset WHERE content_id = ?"
    )
    clear = (
        "DELETE FROM asset_tag WHERE tag = ? AND automatic"
        " AND asset_id IN (SELECT id FROM asset WHERE content_id = ?)"
    )
    for content_id in set(content_ids):
        is_there = connection.execute(has_file, (content_id,)).fetchone() is not None
        connection.execute(clear if is_there else mark, (MISSING, content_id))


def _content(connection: sqlite3.Connection, facts: FileFacts) -> tuple[int, bool]:
    """Contents without a hash are never the same."""
    if facts.hash is not None:
        known = connection.execute("SELECT id FROM content WHERE hash = ?", (facts.hash,)).fetchone()
        if known is not None:
            return known[0], False
    values = (facts.hash, facts.size)
    return int(
        connection.execute("INSERT INTO content (hash, size) VALUES (?, ?)", values).lastrowid or 0
    ), True


def _renew(
    connection: sqlite3.Connection, asset_id: str, content_id: int, named: Named, facts: FileFacts
) -> bool:
    """The asset follows its file; whether that has got a content that is new."""
    current, is_new = content_id, False
    if facts.hash is None:
        connection.execute("UPDATE content SET size = ? WHERE id = ?", (facts.size, content_id))
    else:
        current, is_new = _content(connection, facts)
    connection.execute(
        """
        UPDATE asset SET content_id = ?, mtime_ns = ?, is_gone = 0, loader_path = ?,
            job_id = coalesce(?, job_id), metadata = coalesce(?, metadata) WHERE id = ?
        """,
        (
            current,
            facts.mtime_ns,
            facts.loader_path,
            named.job_id,
            None if facts.metadata is None else json.dumps(facts.metadata),
            asset_id,
        ),
    )
    add_tags(connection, asset_id, sorted(facts.tags), automatic=True)
    add_tags(connection, asset_id, named.tags, automatic=False)
    _drop_unused(connection, content_id)
    _mark_missing(connection, (content_id, current))
    return is_new


def _add(connection: sqlite3.Connection, content_id: int, named: Named, facts: FileFacts | None) -> str:
    asset_id, moment = str(uuid.uuid4()), now()
    own = {"filename": facts.filename} if facts is not None and facts.filename else {}
    metadata = facts.metadata if facts is not None else None
    row = {
        "id": asset_id,
        "content_id": content_id,
        "owner": named.owner,
        "name": named.name,
        "path": None if facts is None else facts.path,
        "mtime_ns": None if facts is None else facts.mtime_ns,
        "loader_path": None if facts is None else facts.loader_path,
        "mime_type": named.mime_type or _sibling(connection, content_id, "mime_type") or UNKNOWN_TYPE,
        "user_metadata": json.dumps({**(named.user_metadata or {}), **own}),
        "metadata": json.dumps(metadata)
        if metadata
        else _sibling(connection, content_id, "metadata") or "{}",
        "preview_id": named.preview_id,
        "job_id": named.job_id,
        **dict.fromkeys(("created_at", "updated_at", "last_access_time"), moment),
    }
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO asset ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    if facts is not None:
        add_tags(connection, asset_id, sorted(facts.tags), automatic=True)
    add_tags(connection, asset_id, named.tags, automatic=False)
    return asset_id


def _sibling(connection: sqlite3.Connection, content_id: int, column: str) -> str | None:
    """What another name of the same content says."""
    query = f"SELECT {column} FROM asset WHERE content_id = ? AND {column} NOT IN ('', '{{}}') LIMIT 1"
    found = connection.execute(query, (content_id,)).fetchone()
    return None if found is None else str(found[0])


def _remove(connection: sqlite3.Connection, asset_id: str) -> None:
    (content_id,) = connection.execute("SELECT content_id FROM asset WHERE id = ?", (asset_id,)).fetchone()
    connection.execute("DELETE FROM asset_tag WHERE asset_id = ?", (asset_id,))
    connection.execute("DELETE FROM asset WHERE id = ?", (asset_id,))
    _drop_unused(connection, content_id)


def _drop_unused(connection: sqlite3.Connection, content_id: int) -> None:
    """A content that has neither a hash nor a name can never be found again."""
    unused = "hash IS NULL AND NOT EXISTS (SELECT 1 FROM asset WHERE asset.content_id = content.id)"
    connection.execute(f"DELETE FROM content WHERE id = ? AND {unused}", (content_id,))
