"""Who holds how much of a device. Engines lease before they allocate; when short, the ledger reclaims in one
written order: idle weights, then cached pages, then cached conditionings. It allocates nothing itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Self

from runtime.platform.errors import OutOfMemory


class Reclaim(IntEnum):
    """What may be taken back, first to last."""

    IDLE_WEIGHTS = 1
    CACHED_PAGES = 2
    CONDITIONINGS = 3


@dataclass(eq=False, slots=True)
class Lease:
    """`size_bytes` of one device for `owner`; given back by `with` or `release()`, once."""

    ledger: Ledger
    owner: str
    size_bytes: int

    def release(self) -> None:
        self.ledger._give_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Ledger:
    """One device's budget. Any thread may call; reclaimers run on the thread that leases.

    A reclaimer takes the number of bytes wanted and releases what it can of its own leases, possibly nothing.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self._leases: dict[int, Lease] = {}
        self._reclaimers: list[tuple[Reclaim, Callable[[int], None]]] = []
        self._lock = threading.RLock()

    @property
    def used_bytes(self) -> int:
        with self._lock:
            return sum(lease.size_bytes for lease in self._leases.values())

    @property
    def free_bytes(self) -> int:
        return self.capacity_bytes - self.used_bytes

    def residents(self) -> dict[str, int]:
        """Bytes by owner."""
        held: dict[str, int] = {}
        with self._lock:
            for lease in self._leases.values():
                held[lease.owner] = held.get(lease.owner, 0) + lease.size_bytes
        return held

    def on_shortage(self, kind: Reclaim, reclaim: Callable[[int], None]) -> None:
        with self._lock:
            self._reclaimers.append((kind, reclaim))
            self._reclaimers.sort(key=lambda entry: entry[0])

    def lease(self, owner: str, size_bytes: int) -> Lease:
        """Raises `OutOfMemory`, naming the sizes, when reclaiming everything would not make room."""
        assert size_bytes >= 0, size_bytes
        with self._lock:
            for _, reclaim in self._reclaimers:
                if size_bytes <= self.free_bytes:
                    break
                reclaim(size_bytes - self.free_bytes)
            if size_bytes > self.free_bytes:
                raise OutOfMemory(
                    f"{owner} needs {_megabytes(size_bytes)}, and {_megabytes(self.free_bytes)} of"
                    f" {_megabytes(self.capacity_bytes)} are free; held by {self._holders()}"
                )
            lease = Lease(self, owner, size_bytes)
            self._leases[id(lease)] = lease
            return lease

    def _give_back(self, lease: Lease) -> None:
        with self._lock:
            assert self._leases.pop(id(lease), None) is lease, f"{lease.owner} gave a lease back twice"

    def _holders(self) -> str:
        held = sorted(self.residents().items(), key=lambda entry: -entry[1])
        return ", ".join(f"{owner} {_megabytes(size)}" for owner, size in held[:5]) or "nobody"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.0f} MiB"
