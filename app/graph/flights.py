"""Running jobs that need the same result compute it once: the first flies, the others wait for it to land.

Those who wait hear how far it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

from app.events import NodePreview, NodeProgress, NodeText
from app.graph.values import Entry

Told = NodeProgress | NodePreview | NodeText
Hear = Callable[[Told], None]


class Flights:
    """Owned by the event loop's thread. After a flight without result, the next of those who wait flies."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Entry | None]] = {}
        self._hearing: defaultdict[str, list[Hear]] = defaultdict(list)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    async def join(self, key: str, hear: Hear) -> Entry | None:
        """The result of somebody's flight. None means that this caller now flies, and must `land`.

        `hear` is called from any thread, and not any more once this has returned.
        """
        while key in self._waiting:
            with self._told(key, hear):
                entry = await asyncio.shield(self._waiting[key])
            if entry is not None:
                return entry
        self._waiting[key] = asyncio.get_running_loop().create_future()
        return None

    def tell(self, key: str, event: Told) -> None:
        """Of the one who flies, to those who wait. Any thread may say it."""
        with self._lock:
            for hear in self._hearing.get(key, ()):
                hear(event)

    def land(self, key: str, entry: Entry | None) -> None:
        """With None when there is no result."""
        self._waiting.pop(key).set_result(entry)

    @contextlib.contextmanager
    def _told(self, key: str, hear: Hear) -> Iterator[None]:
        with self._lock:
            self._hearing[key].append(hear)
        try:
            yield
        finally:
            with self._lock:
                self._hearing[key].remove(hear)
                if not self._hearing[key]:
                    del self._hearing[key]
