"""Carries events from any thread to every client that they concern, without letting one client slow another.

Starts, results and errors never drop; of progress, previews and text only the newest unsent one is kept.
Events are numbered, so that a client that comes back is told what it missed. It knows no sockets, no JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Hashable
from dataclasses import dataclass

from app.events import (
    Event,
    ExecutionEnd,
    ExecutionInterrupted,
    JobEvent,
    NodeStarted,
    PackMessage,
    QueueChanged,
)
from app.replay import COALESCING, Numbered, Replay, coalescing_key

HEARD_BY_ALL_WHEN_UNOWNED = (*COALESCING, ExecutionInterrupted)


@dataclass(frozen=True, slots=True)
class Direct:
    """A finished frame for one client, in its place among the events."""

    frame: str | bytes


class Overrun(Exception):
    """The client did not read for so long that its backlog is full."""


class Replaced(Exception):
    """Another connection took this one's client id."""


class Subscription:
    """The backlog of one client. `receive` is for one task of the loop it was made in."""

    def __init__(self, client_id: str, limit: int) -> None:
        self.client_id = client_id
        self._limit = limit
        self._pending: dict[Hashable, Numbered | Direct] = {}
        self._numbers = itertools.count()
        self._ended: Exception | None = None
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._is_woken = False

    def put(self, message: Numbered | Direct) -> None:
        with self._lock:
            self._store(message)
            was_woken, self._is_woken = self._is_woken, True
        if not was_woken and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    def end(self, reason: Exception) -> None:
        with self._lock:
            self._pending.clear()
            self._ended = reason
        self._wake.set()

    async def receive(self) -> Numbered | Direct:
        """The next message; raises `Overrun` or `Replaced` when there will be none."""
        while True:
            self._wake.clear()
            with self._lock:
                self._is_woken = False
                if self._ended is not None:
                    raise self._ended
                if self._pending:
                    return self._pending.pop(next(iter(self._pending)))
            await self._wake.wait()

    def unread(self, most: int) -> list[Numbered | Direct]:
        """The next messages that are there already."""
        with self._lock:
            keys = list(itertools.islice(self._pending, most))
            return [self._pending.pop(key) for key in keys]

    def _store(self, message: Numbered | Direct) -> None:
        if self._ended is not None:
            return
        event = message.event if isinstance(message, Numbered) else None
        key = None if event is None else coalescing_key(event)
        if key is not None:
            # to the end, so that an update never arrives before the start of what it updates
            self._pending.pop(key, None)
            if len(self._pending) < self._limit:
                self._pending[key] = message
        elif len(self._pending) < self._limit:
            self._pending[next(self._numbers)] = message
        elif isinstance(event, QueueChanged):
            self._pending[QueueChanged] = message
        else:
            self._pending.clear()
            self._ended = Overrun(f"client {self.client_id} left {self._limit} messages unread")


class Bus:
    """`publish` may be called from any thread; events of one thread arrive in the order of the calls.

    Numbers begin with `first_number`, which must lie above those of an earlier process.
    """

    def __init__(self, limit: int = 4096, first_number: int = 1) -> None:
        self._limit = limit
        self._latest = first_number - 1
        self._replay = Replay(first_number)
        self._lock = threading.Lock()
        self._subscriptions: dict[str, Subscription] = {}
        self._running_node: dict[str, NodeStarted] = {}

    def publish(self, event: Event) -> None:
        with self._lock:
            self._latest += 1
            numbered = Numbered(self._latest, event)
            self._remember(event)
            self._replay.add(numbered)
            for subscription in self._listeners(event):
                subscription.put(numbered)

    def subscribe(
        self, client_id: str, *greetings: Direct, since: int | None = None, gap: Direct | None = None
    ) -> Subscription:
        """A client id belongs to its newest connection. The greetings come before every event.

        With `since`, the kept events of the client's own prompts come again, also older ones: they tell where
        its prompts stand. `gap` comes before them when more was missed than that.
        """
        fresh = Subscription(client_id, self._limit)
        for greeting in greetings:
            fresh.put(greeting)
        with self._lock:
            if since is not None:
                if gap is not None and self._replay.has_lost(client_id, since, self._latest):
                    fresh.put(gap)
                for numbered in self._replay.events(client_id):
                    fresh.put(numbered)
            older = self._subscriptions.get(client_id)
            self._subscriptions[client_id] = fresh
        if older is not None:
            older.end(Replaced(f"client {client_id} connected again"))
        return fresh

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            if self._subscriptions.get(subscription.client_id) is subscription:
                del self._subscriptions[subscription.client_id]

    def running_node(self, client_id: str) -> NodeStarted | None:
        """The node that a prompt of this client started last, for a client that connects while it runs."""
        with self._lock:
            owned = (event for event in self._running_node.values() if event.client_id == client_id)
            return next(owned, None)

    def _remember(self, event: Event) -> None:
        if isinstance(event, NodeStarted):
            self._running_node[event.prompt_id] = event
        elif isinstance(event, ExecutionEnd):
            self._running_node.pop(event.prompt_id, None)

    def _listeners(self, event: Event) -> list[Subscription]:
        if isinstance(event, JobEvent | PackMessage) and event.client_id is not None:
            owner = self._subscriptions.get(event.client_id)
            return [] if owner is None else [owner]
        if isinstance(event, (QueueChanged, PackMessage, *HEARD_BY_ALL_WHEN_UNOWNED)):
            return list(self._subscriptions.values())
        return []
