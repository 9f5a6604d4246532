"""Everything the assets API is answered from: names, tags, places and scans, and how new files come in."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from app.assets import disk
from app.assets.places import MISSING, MODEL_TYPE, ROLES, Places, mime_type_of
from app.assets.rows import Asset, Named
from app.assets.scan import Scan
from app.assets.store import Assets
from app.assets.tags import Tags
from app.database import Database
from app.events import Event
from app.files import Files, UnsafeName, within
from nodes.spec import NodeResult

log = logging.getLogger(__name__)

UPLOADED = "uploaded"


class HashMismatch(ValueError):
    """An upload is not what its hash says."""


class Catalog:
    def __init__(
        self, database: Database, files: Files, publish: Callable[[Event], None], hashes: bool
    ) -> None:
        self.places = Places(files)
        self.assets = Assets(database)
        self.tags = Tags(database)
        # of equal uploads at the same time the second must find the first, and a scan must find both
        self._placing = asyncio.Lock()
        self.scan = Scan(self.assets, self.places, publish, self._placing, hashes)
        self._files = files

    async def open(self) -> None:
        folders = [MODEL_TYPE + name for name, _ in self.places.model_folders()]
        await self.tags.know([*ROLES, "temp", UPLOADED, MISSING, *folders])
        self.scan.begin(ROLES)

    async def close(self) -> None:
        await self.scan.close()

    async def file_with(self, hash: str) -> Path | None:
        """A file with this content that is really there."""
        path = await self.assets.file_with(hash)
        return await asyncio.to_thread(_existing, path)

    async def upload(
        self, content: IO[bytes], filename: str, named: Named, hash: str | None
    ) -> tuple[Asset, bool]:
        """The asset, and whether its content is new. What is known already is not stored again, and then the
        tags need name no destination. Raises `HashMismatch` and `NoDestination`."""
        found = await asyncio.to_thread(disk.hash_of, content)
        if hash not in (None, found):
            raise HashMismatch(f"The content has the hash {found}")
        async with self._placing:
            if await self.file_with(found) is not None:
                return await self.assets.add_name(found, named), False
            folder = self.places.destination(named.tags)
            path = await asyncio.to_thread(disk.stored, content, folder, found, filename)
            facts = await asyncio.to_thread(disk.facts_of, path, self.places, hash=found)
            assert facts is not None, f"{path} was just written"
            facts = replace(facts, metadata=await asyncio.to_thread(disk.picture_metadata, path))
            return await self.assets.add_file(facts, replace(named, tags=(*named.tags, UPLOADED)))

    async def uploaded(self, path: Path, owner: str) -> Asset | None:
        """A file that came in by another way; None when it has no name that can be told."""
        return await self._add(path, Named(path.name, (UPLOADED,), owner=owner), hashes=True)

    async def saved(self, job_id: str, result: NodeResult) -> NodeResult:
        """The files that a node says it has saved become assets, and its words to the client name them."""
        if not result.ui:
            return result
        ui = {
            key: [await self._noted(job_id, one) for one in items]
            if isinstance(items, list | tuple)
            else items
            for key, items in result.ui.items()
        }
        return replace(result, ui=ui)

    async def _noted(self, job_id: str, item: Any) -> Any:
        path = await asyncio.to_thread(self._named_file, item) if isinstance(item, Mapping) else None
        if path is None:
            return item
        try:
            asset = await self._add(path, Named(path.name, job_id=job_id), hashes=False)
        except sqlite3.Error as error:
            # the picture is there all the same
            log.error("%s is no asset: %s", path, error)
            return item
        return item if asset is None else {**item, "id": asset.id}

    async def _add(self, path: Path, named: Named, hashes: bool) -> Asset | None:
        hash = await asyncio.to_thread(disk.hash_of_file, path) if hashes else None
        facts = await asyncio.to_thread(disk.facts_of, path, self.places, hash=hash)
        if facts is None:
            return None
        facts = replace(facts, metadata=await asyncio.to_thread(disk.picture_metadata, path))
        asset, _ = await self.assets.add_file(facts, replace(named, mime_type=mime_type_of(path.name)))
        return asset

    def _named_file(self, item: Mapping[str, Any]) -> Path | None:
        words = [item.get("type"), item.get("subfolder", ""), item.get("filename")]
        if not all(isinstance(word, str) for word in words) or not words[2]:
            return None
        root = self._files.directories.by_type(words[0])
        if root is None:
            return None
        try:
            within(root, f"{words[1]}/{words[2]}" if words[1] else words[2])
        except UnsafeName:
            return None
        path = root / words[1] / words[2]
        return path if path.is_file() else None


def _existing(path: str | None) -> Path | None:
    return Path(path) if path is not None and Path(path).is_file() else None
