"""Which assets a list is asked for, as SQL, and the cursor that continues it. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.assets.rows import EVERYBODY

SORT_COLUMNS = {
    "name": "asset.name",
    "created_at": "asset.created_at",
    "updated_at": "asset.updated_at",
    "size": "content.size",
    "last_access_time": "asset.last_access_time",
}
# what a download changes is no order to walk along
CURSOR_SORTS = frozenset(SORT_COLUMNS) - {"last_access_time"}
_MATCHES = "metadata_matches"


class InvalidCursor(ValueError):
    """It was made by no server, or for a list in another order."""


@dataclass(frozen=True, slots=True)
class Filters:
    """`metadata` asks each of its keys for a value, or for one of a list of values."""

    owner: str
    with_public: bool = True
    tags_all: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_none: tuple[str, ...] = ()
    name_contains: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    hash: str | None = None
    job_id: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """A condition on `asset` and `content`; `prepare` the connection first."""
        owners = [EVERYBODY, self.owner] if self.with_public else [self.owner]
        parts = [f"asset.deleted_at IS NULL AND asset.owner IN ({_marks(owners)})"]
        values: list[Any] = [*owners]
        for tag in self.tags_all:
            parts.append("EXISTS (SELECT 1 FROM asset_tag WHERE asset_id = asset.id AND tag = ?)")
            values.append(tag)
        for word, tags in (("EXISTS", self.tags_any), ("NOT EXISTS", self.tags_none)):
            if tags:
                among = f"SELECT 1 FROM asset_tag WHERE asset_id = asset.id AND tag IN ({_marks(tags)})"
                parts.append(f"{word} ({among})")
                values += tags
        equal = {"content.hash": self.hash, "asset.job_id": self.job_id}
        for column, value in equal.items():
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        if self.name_contains:
            parts.append("instr(lower(asset.name), lower(?)) > 0")
            values.append(self.name_contains)
        if self.metadata:
            parts.append(f"{_MATCHES}(asset.user_metadata, ?)")
            values.append(json.dumps(self.metadata))
        return " AND ".join(parts), values


@dataclass(frozen=True, slots=True)
class Window:
    """`after` is a cursor, and then `offset` counts for nothing."""

    limit: int = 20
    offset: int = 0
    sort: str = "created_at"
    descending: bool = True
    after: str | None = None

    def order(self) -> str:
        way = "DESC" if self.descending else "ASC"
        return f"{SORT_COLUMNS[self.sort]} {way}, asset.id {way}"

    def beyond(self) -> tuple[str, list[Any]]:
        """The condition that the cursor stands for. Raises `InvalidCursor`."""
        if self.after is None:
            return "1", []
        compare = "<" if self.descending else ">"
        return f"({SORT_COLUMNS[self.sort]}, asset.id) {compare} (?, ?)", list(self._read(self.after))

    def cursor(self, value: str | int, asset_id: str) -> str | None:
        """Continues behind the asset; None for an order in which nothing continues."""
        if self.sort not in CURSOR_SORTS:
            return None
        says = {"s": self.sort, "o": self._way, "v": str(value), "id": asset_id}
        return base64.urlsafe_b64encode(json.dumps(says).encode()).rstrip(b"=").decode()

    @property
    def _way(self) -> str:
        return "desc" if self.descending else "asc"

    def _read(self, text: str) -> tuple[str | int, str]:
        try:
            says = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
            is_ours = (says["s"], says["o"]) == (self.sort, self._way) and self.sort in CURSOR_SORTS
            asset_id, value = str(says["id"]), str(says["v"])
            position = value if self.sort == "name" else int(value)
            position_bytes = (
                position.encode() if isinstance(position, str) else position.to_bytes(8, signed=True)
            )
            asset_id.encode()
        except (binascii.Error, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise InvalidCursor("The cursor is not one that this server gave") from None
        if not is_ours or len(position_bytes) > 4096:
            raise InvalidCursor("The cursor belongs to a list in another order")
        return position, asset_id


def prepare(connection: sqlite3.Connection) -> None:
    """Gives the connection the function that `where` uses."""
    connection.create_function(_MATCHES, 2, _metadata_matches, deterministic=True)


def _metadata_matches(metadata: str, asked: str) -> bool:
    has: dict[str, Any] = json.loads(metadata)
    wanted: dict[str, Any] = json.loads(asked)
    return all(_matches(has.get(key), value) for key, value in wanted.items())


def _matches(has: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_matches(has, one) for one in wanted)
    return _is_same(has, wanted) or (isinstance(has, list) and any(_is_same(one, wanted) for one in has))


def _is_same(one: Any, other: Any) -> bool:
    """As in JSON, where true is no number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _marks(values: tuple[str, ...] | list[str]) -> str:
    return ",".join("?" * len(values))
