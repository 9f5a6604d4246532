"""What /object_info says: every node class described, off the event loop, once for all who ask at a time."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.files import Files
from app.json_text import encode
from nodes.registry import Registry

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """`etag` changes with the text, and with nothing else."""

    entries: Mapping[str, Mapping[str, Any]]
    body: bytes
    zipped: bytes
    etag: str


class Definitions:
    """Models may come between two calls, so each description is made anew; an equal one is kept."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._latest: Described | None = None
        self._turn = asyncio.Lock()
        self._begun = 0

    async def every(self, registry: Registry) -> Described:
        """Those who come while one is made share the next: it knows all that was there when they came."""
        needed = self._begun + 1
        async with self._turn:
            if self._latest is None or self._begun < needed:
                self._begun += 1
                self._latest = await asyncio.to_thread(self._every, registry, self._latest)
            return self._latest

    async def one(self, registry: Registry, node_id: str) -> Described:
        """Of an unknown class, an empty object."""
        known = () if registry.find(node_id) is None else (node_id,)
        return await asyncio.to_thread(lambda: _described(*_entries(registry, self._files, known)))

    def _every(self, registry: Registry, before: Described | None) -> Described:
        entries, body = _entries(registry, self._files, tuple(registry))
        return before if before is not None and before.body == body else _described(entries, body)


def _entries(
    registry: Registry, files: Files, ids: Iterable[str]
) -> tuple[dict[str, Mapping[str, Any]], bytes]:
    """Each class becomes text by itself: a broken one hides no other, and no long text holds the loop."""
    entries: dict[str, Mapping[str, Any]] = {}
    texts: list[str] = []
    for node_id in ids:
        try:
            entry = registry.object_info(node_id, files)
            texts.append(f"{json.dumps(node_id)}: {encode(entry)}")
        # a pack's broken declaration must not hide the other nodes
        except Exception:
            log.exception("node %s cannot describe its inputs and is left out", node_id)
        else:
            entries[node_id] = entry
    return entries, f"{{{', '.join(texts)}}}".encode()


def _described(entries: Mapping[str, Mapping[str, Any]], body: bytes) -> Described:
    etag = hashlib.blake2b(body, digest_size=12).hexdigest()
    return Described(entries, body, gzip.compress(body, 6, mtime=0), etag)
