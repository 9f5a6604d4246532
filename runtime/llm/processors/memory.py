"""Items by what their media hold, so that a chat does not prepare its images anew at every turn."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

from runtime.llm.media import Item


class ItemMemory:
    """Keeps `max_bytes`, least recently used first to go. Any thread may use it; threads that want the same
    item at once wait for the one that makes it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Item] = OrderedDict()
        self._making: dict[bytes, Future[Item]] = {}
        self.num_bytes = 0

    def get(self, key: bytes, make: Callable[[], Item]) -> Item:
        """What `make` raises is raised for all who wait, and is forgotten."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            others = self._making.get(key)
            mine = self._making.setdefault(key, Future())
        if others is not None:
            return others.result()
        try:
            item = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            self._keep(key, item)
        mine.set_result(item)
        return item

    def _keep(self, key: bytes, item: Item) -> None:
        self._kept[key] = item
        self.num_bytes += item.num_bytes
        while self.num_bytes > self._max_bytes:
            self.num_bytes -= self._kept.popitem(last=False)[1].num_bytes
