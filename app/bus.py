"""Carries events from any thread to every client that they concern, without letting one client slow another.

Starts, results and errors never drop; of progress, previews and text only the newest unsent one is kept. It
knows no sockets and no JSON.
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
    NodePreview,
    NodeProgress,
    NodeStarted,
    NodeText,
    QueueChanged,
)

COALESCING = (NodeProgress, NodePreview, NodeText)
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
        self._pending: dict[Hashable, Event | Direct] = {}
        self._numbers = itertools.count()
        self._ended: Exception | None = None
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()

    def put(self, message: Event | Direct) -> None:
        with self._lock:
            self._store(message)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    def end(self, reason: Exception) -> None:
        with self._lock:
            self._pending.clear()
            self._ended = reason
        self._wake.set()

    async def receive(self) -> Event | Direct:
        """The next message; raises `Overrun` or `Replaced` when there will be none."""
        while True:
            self._wake.clear()
            with self._lock:
                if self._ended is not None:
                    raise self._ended
                if self._pending:
                    return self._pending.pop(next(iter(self._pending)))
            await self._wake.wait()

    def _store(self, message: Event | Direct) -> None:
        if self._ended is not None:
            return
        if isinstance(message, COALESCING):
            key: Hashable = (type(message), message.prompt_id, message.node.node_id)
            # to the end, so that an update never arrives before the start of what it updates
            self._pending.pop(key, None)
            if len(self._pending) < self._limit:
                self._pending[key] = message
        elif len(self._pending) < self._limit:
            self._pending[next(self._numbers)] = message
        elif isinstance(message, QueueChanged):
            self._pending[QueueChanged] = message
        else:
            self._pending.clear()
            self._ended = Overrun(f"client {self.client_id} left {self._limit} messages unread")


class Bus:
    """`publish` may be called from any thread; events of one thread arrive in the order of the calls."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._subscriptions: dict[str, Subscription] = {}
        self._running_node: dict[str, NodeStarted] = {}

    def publish(self, event: Event) -> None:
        with self._lock:
            self._remember(event)
            for subscription in self._listeners(event):
                subscription.put(event)

    def subscribe(self, client_id: str, *greetings: Direct) -> Subscription:
        """A client id belongs to its newest connection. The greetings come before every event."""
        fresh = Subscription(client_id, self._limit)
        for greeting in greetings:
            fresh.put(greeting)
        with self._lock:
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
        if isinstance(event, JobEvent) and event.client_id is not None:
            owner = self._subscriptions.get(event.client_id)
            return [] if owner is None else [owner]
        if isinstance(event, (QueueChanged, *HEARD_BY_ALL_WHEN_UNOWNED)):
            return list(self._subscriptions.values())
        return []
