"""Running jobs that need the same result compute it once: the first flies, the others wait for it to land."""

from __future__ import annotations

import asyncio

from app.graph.values import Entry


class Flights:
    """Owned by the event loop's thread. After a flight without result, the next of those who wait flies."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Entry | None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def join(self, key: str) -> Entry | None:
        """The result of somebody's flight. None means that this caller now flies, and must `land`."""
        while key in self._waiting:
            entry = await asyncio.shield(self._waiting[key])
            if entry is not None:
                return entry
        self._waiting[key] = asyncio.get_running_loop().create_future()
        return None

    def land(self, key: str, entry: Entry | None) -> None:
        """With None when there is no result."""
        self._waiting.pop(key).set_result(entry)
