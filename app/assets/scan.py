"""Keeps the assets in step with the disk: registers what lies in the folders, notes what has gone.

One scan at a time, in the event loop; what touches the disk goes to threads, in batches between which it can
be cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.assets import disk
from app.assets.places import Places, mime_type_of
from app.assets.rows import FileFacts, Named
from app.assets.store import Assets, KnownFile
from app.events import Event, PackMessage

log = logging.getLogger(__name__)

_BATCH = 200


@dataclass(slots=True)
class Progress:
    scanned: int = 0
    total: int = 0
    created: int = 0
    skipped: int = 0


class Scan:
    """`placing` is held by whoever writes a file and has not yet said what it is. `hashes` lets a scan read
    every new file whole.
    """

    def __init__(
        self,
        assets: Assets,
        places: Places,
        publish: Callable[[Event], None],
        placing: asyncio.Lock,
        hashes: bool,
    ) -> None:
        self._assets = assets
        self._places = places
        self._publish = publish
        self._placing = placing
        self._hashes = hashes
        self._task: asyncio.Task[None] | None = None
        self._progress: Progress | None = None
        self._errors: list[str] = []

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, roles: Sequence[str]) -> None:
        """`roles` of input, output and models. None may be running."""
        assert not self.is_running
        self._progress, self._errors = Progress(), []
        self._task = asyncio.create_task(self._run(tuple(dict.fromkeys(roles))), name="asset scan")

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> bool:
        """Whether there was one."""
        return self.is_running and self._task is not None and self._task.cancel()

    async def close(self) -> None:
        self.cancel()
        await self.ended()

    def status(self) -> dict[str, Any]:
        cancelling = self.is_running and self._task is not None and self._task.cancelling()
        state = "CANCELLING" if cancelling else "RUNNING" if self.is_running else "IDLE"
        progress = None if self._progress is None else asdict(self._progress)
        return {"state": state, "progress": progress, "errors": list(self._errors)}

    async def prune(self) -> int:
        """How many assets have newly lost their file, or lie where no asset may."""
        owned = self._places.owned_roots()
        known = [file for file in await self._assets.files() if not file.is_gone]
        gone = await asyncio.to_thread(
            lambda: [file.id for file in known if not _is_owned(file, owned) or not Path(file.path).is_file()]
        )
        await self._assets.note_files(gone, [])
        return len(gone)

    async def _run(self, roles: Sequence[str]) -> None:
        self._say("started", {"roots": list(roles)})
        try:
            await self._look_again(roles)
            new = await self._register(roles)
            self._say("fast_complete", self._figures())
            await self._enrich(new)
            self._say("enrich_complete", self._figures())
            self._say("completed", self._figures())
        except asyncio.CancelledError:
            self._say("cancelled", self._figures())
        except (OSError, sqlite3.Error) as error:
            log.error("the scan for assets failed: %s", error)
            self._errors.append(str(error))
            self._say("error", {"message": str(error)})

    async def _look_again(self, roles: Sequence[str]) -> None:
        """Nothing walks the folder of temporary files, because they register themselves."""
        roots = [root for role in (*roles, "temp") for root in self._places.roots(role)]
        known = [file for file in await self._assets.files() if _is_owned(file, roots)]
        gone, back = await asyncio.to_thread(_gone_and_back, known)
        await self._assets.note_files(gone, back)

    async def _register(self, roles: Sequence[str]) -> list[Path]:
        """Files that are new or have changed, with what a look at their place tells."""
        known = {file.path: file for file in await self._assets.files()}
        found = await asyncio.to_thread(self._found, roles)
        assert self._progress is not None
        self._progress.total = len(found)
        new: list[Path] = []
        for batch in _batches(found):
            async with self._placing:
                facts = await asyncio.to_thread(self._changed, batch, known)
                named = [(one, _named(one)) for one in facts]
                self._progress.created += await self._assets.add_found(named)
            self._progress.scanned += len(batch)
            self._progress.skipped += len(batch) - len(facts)
            new += [Path(one.path) for one in facts]
            self._say("progress", self._figures())
        return new

    async def _enrich(self, new: Sequence[Path]) -> None:
        for batch in _batches(new):
            await self._assets.note_contents(await asyncio.to_thread(self._read, batch))

    def _found(self, roles: Sequence[str]) -> list[Path]:
        found: list[Path] = []
        for role in roles:
            is_models = role == "models"
            found += self._places.model_files() if is_models else disk.walked(self._places.roots(role))
        return list(dict.fromkeys(found))

    def _changed(self, paths: Iterable[Path], known: dict[str, KnownFile]) -> list[FileFacts]:
        changed: list[FileFacts] = []
        for path in paths:
            facts, before = disk.facts_of(path, self._places), known.get(str(path))
            if facts is None or (before is not None and _is_same(facts, before)):
                continue
            if before is not None and before.hash is not None:
                facts = replace(facts, hash=disk.hash_of_file(path))
            changed.append(facts)
        return changed

    def _read(self, paths: Iterable[Path]) -> list[FileFacts]:
        read: list[FileFacts] = []
        for path in paths:
            hash = disk.hash_of_file(path) if self._hashes else None
            facts = disk.facts_of(path, self._places, hash=hash)
            if facts is not None:
                read.append(replace(facts, metadata=disk.picture_metadata(path)))
        return read

    def _figures(self) -> dict[str, Any]:
        assert self._progress is not None
        return asdict(self._progress)

    def _say(self, what: str, data: dict[str, Any]) -> None:
        self._publish(PackMessage(None, f"assets.seed.{what}", data))


def _named(facts: FileFacts) -> Named:
    name = Path(facts.path).name
    return Named(name, mime_type=mime_type_of(name))


def _is_owned(file: KnownFile, roots: Sequence[Path]) -> bool:
    return any(Path(file.path).is_relative_to(root) for root in roots)


def _is_same(facts: FileFacts, before: KnownFile) -> bool:
    return (facts.size, facts.mtime_ns) == (before.size, before.mtime_ns)


def _gone_and_back(known: Sequence[KnownFile]) -> tuple[list[str], list[str]]:
    gone, back = [], []
    for file in known:
        try:
            status = Path(file.path).stat()
        except OSError:
            if not file.is_gone:
                gone.append(file.id)
            continue
        if file.is_gone and (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns):
            back.append(file.id)
    return gone, back


def _batches(paths: Sequence[Path]) -> Iterable[Sequence[Path]]:
    return (paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH))
