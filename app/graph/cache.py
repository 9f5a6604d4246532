"""Results of nodes by cache key, shared by all jobs. Over its bytes, the least recently used one goes."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.graph.values import Entry

DEFAULT_BYTES = 4 * 1024**3


class ResultCache:
    """Owned by the event loop's thread. `max_bytes` 0 keeps only what running jobs have pinned."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES, max_entries: int | None = None) -> None:
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self.used_bytes = 0
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._pins: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> Entry | None:
        held = self._held.get(key)
        if held is None:
            return None
        self._held.move_to_end(key)
        return held.entry

    def put(self, key: str, entry: Entry) -> None:
        self._remove(key)
        size = size_bytes((entry.outputs, entry.ui))
        self._held[key] = _Held(entry, size)
        self.used_bytes += size
        self._shrink()

    def forget(self, key: str) -> None:
        """Drops a result that is no longer what its key says, pinned or not."""
        self._remove(key)

    def pin(self, key: str) -> None:
        """Keeps the entry, now or once it is put, until the same number of unpins."""
        self._pins[key] += 1

    def unpin(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._pins[key] -= 1
            assert self._pins[key] >= 0, key
            if not self._pins[key]:
                del self._pins[key]
        self._shrink()

    def clear(self) -> None:
        """Forgets everything that no running job has pinned."""
        for key in [key for key in self._held if key not in self._pins]:
            self._remove(key)

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forgets the rest, but for what running jobs have pinned."""
        kept = {*keys, *self._pins}
        for key in [key for key in self._held if key not in kept]:
            self._remove(key)

    def check(self) -> None:
        assert self.used_bytes == sum(held.size for held in self._held.values()), self.used_bytes
        assert all(count > 0 for count in self._pins.values()), self._pins
        if self._is_over():
            assert all(key in self._pins for key in self._held), "over the limit with entries to drop"

    def _shrink(self) -> None:
        if not self._is_over():
            return
        for key in [key for key in self._held if key not in self._pins]:
            self._remove(key)
            if not self._is_over():
                return

    def _is_over(self) -> bool:
        has_too_many = self.max_entries is not None and len(self._held) > self.max_entries
        return has_too_many or self.used_bytes > self.max_bytes

    def _remove(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self.used_bytes -= held.size


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    entry: Entry
    size: int


def size_bytes(value: Any) -> int:
    """What a value keeps in memory, as far as containers and arrays tell; the same object counts once."""
    total = 0
    seen: set[int] = set()
    todo = [value]
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        num_bytes = getattr(item, "nbytes", None)
        total += num_bytes if isinstance(num_bytes, int) else sys.getsizeof(item)
        if isinstance(item, Mapping):
            todo.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            todo.extend(item)
    return total
