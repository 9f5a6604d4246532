"""An asset as data: one name that an owner has for some content, and how it stands in the database."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# an asset of nobody is one that everybody sees
EVERYBODY = ""
HASH_PREFIX = "blake3:"
_HASH = re.compile(r"blake3:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Asset:
    """Times are microseconds since 1970. `path` is None for a name without a file of its own; `file` is then
    another file with the same content, None when there is none. `hash` is None until one was computed.
    """

    id: str
    name: str
    hash: str | None
    size: int
    mime_type: str | None
    path: str | None
    file: str | None
    loader_path: str | None
    user_metadata: Mapping[str, Any]
    metadata: Mapping[str, Any]
    preview_id: str | None
    preview_file: str | None
    job_id: str | None
    created_at: int
    updated_at: int
    last_access_time: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What whoever makes an asset says of it."""

    name: str
    tags: tuple[str, ...] = ()
    user_metadata: Mapping[str, Any] | None = None
    mime_type: str | None = None
    preview_id: str | None = None
    owner: str = EVERYBODY
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as it lies on disk. `hash` None where nobody read all of it."""

    path: str
    size: int
    mtime_ns: int
    hash: str | None = None
    loader_path: str | None = None
    filename: str | None = None
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] | None = None


def is_hash(text: str) -> bool:
    return _HASH.fullmatch(text) is not None


def a_file_of(content: str) -> str:
    """SQL for the path of a file that has the content, the asset's own before others."""
    return (
        f"(CASE WHEN {content}.path IS NOT NULL AND NOT {content}.is_gone THEN {content}.path ELSE"
        f" (SELECT other.path FROM asset AS other WHERE other.content_id = {content}.content_id"
        " AND other.path IS NOT NULL AND NOT other.is_gone LIMIT 1) END)"
    )


_COLUMNS = tuple(field.name for field in fields(Asset))
_TAGS = "(SELECT json_group_array(tag) FROM asset_tag WHERE asset_tag.asset_id = asset.id)"
SELECT = f"""
    SELECT asset.id, asset.name, content.hash, content.size, asset.mime_type, asset.path,
        {a_file_of("asset")}, asset.loader_path, asset.user_metadata, asset.metadata, asset.preview_id,
        (SELECT {a_file_of("preview")} FROM asset AS preview
            WHERE preview.id = asset.preview_id AND preview.deleted_at IS NULL),
        asset.job_id, asset.created_at, asset.updated_at, asset.last_access_time, {_TAGS}
    FROM asset JOIN content ON content.id = asset.content_id
"""


def asset_of(row: tuple[Any, ...]) -> Asset:
    """Of a row that `SELECT` found."""
    values = dict(zip(_COLUMNS, row, strict=True))
    for name in ("user_metadata", "metadata", "tags"):
        values[name] = json.loads(values[name])
    return Asset(**{**values, "tags": tuple(sorted(values["tags"]))})


def find(connection: sqlite3.Connection, asset_id: str, owner: str) -> Asset | None:
    query = f"{SELECT} WHERE asset.id = ? AND asset.deleted_at IS NULL AND asset.owner IN (?, ?)"
    row = connection.execute(query, (asset_id, EVERYBODY, owner)).fetchone()
    return None if row is None else asset_of(row)
