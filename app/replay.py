"""The newest events of each client that owns prompts, for one that lost its connection and comes back.

It keeps a bounded number of events for a bounded number of clients, and knows when that was too little.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from app.events import Event, ExecutionEnd, JobEvent, NodePreview, NodeProgress, NodeText

COALESCING = (NodeProgress, NodePreview, NodeText)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Numbers grow with time, across all clients."""

    number: int
    event: Event


@dataclass(slots=True)
class _Kept:
    """`lost` is the number of the newest event that had to go. `updates` are keys of events, by prompt."""

    events: OrderedDict[Hashable, Numbered] = field(default_factory=OrderedDict)
    updates: dict[str, set[Hashable]] = field(default_factory=dict)
    lost: int = 0


def coalescing_key(event: Event) -> Hashable | None:
    """Events with the same key replace each other; None for those that must all arrive."""
    return (type(event), event.prompt_id, event.node.node_id) if isinstance(event, COALESCING) else None


class Replay:
    """Not thread-safe: the bus calls it under its lock. `first_number` is the first of this process."""

    def __init__(self, first_number: int, events_a_client: int = 2048, clients: int = 64) -> None:
        self._first_number = first_number
        self._limit = events_a_client
        self._max_clients = clients
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lost_with_clients = 0

    def add(self, numbered: Numbered) -> None:
        event = numbered.event
        if not isinstance(event, JobEvent) or event.client_id is None:
            return
        kept = self._of(event.client_id)
        key = coalescing_key(event)
        if key is None:
            kept.events[numbered.number] = numbered
        else:
            kept.updates.setdefault(event.prompt_id, set()).add(key)
            kept.events.pop(key, None)
            kept.events[key] = numbered
        if isinstance(event, ExecutionEnd):
            # of a prompt that ended, pictures and counts on the way are of no more use
            for key in kept.updates.pop(event.prompt_id, ()):
                kept.events.pop(key, None)
        while len(kept.events) > self._limit:
            kept.lost = kept.events.popitem(last=False)[1].number

    def events(self, client_id: str) -> list[Numbered]:
        """All that is kept, oldest first."""
        kept = self._kept.get(client_id)
        return [] if kept is None else list(kept.events.values())

    def has_lost(self, client_id: str, since: int, latest: int) -> bool:
        """Whether the client missed more than is kept, when `since` was the last number that it saw."""
        if since == 0:
            # it saw nothing yet, so there is no place at which something could be missing
            return False
        kept = self._kept.get(client_id)
        lost = self._lost_with_clients if kept is None else kept.lost
        return lost > since or not self._first_number <= since <= latest

    def _of(self, client_id: str) -> _Kept:
        kept = self._kept.setdefault(client_id, _Kept(lost=self._lost_with_clients))
        self._kept.move_to_end(client_id)
        while len(self._kept) > self._max_clients:
            _, gone = self._kept.popitem(last=False)
            newest = next(reversed(gone.events.values())).number if gone.events else gone.lost
            self._lost_with_clients = max(self._lost_with_clients, newest)
        return kept
