"""A request as its owner sees it: events to iterate, a result to await, a way to cancel.

Both runtimes hand these out. Any thread may deliver; any event loop or thread may consume. Knows no engine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Cancelled(Exception):
    """The request was cancelled by its owner."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one request; `request_id` says which."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The first device work of the request was scheduled."""


@dataclass(frozen=True, slots=True)
class Done(Event):
    result: Any


@dataclass(frozen=True, slots=True)
class Failed(Event):
    error: BaseException


@dataclass(frozen=True, slots=True)
class CancelledEvent(Event):
    """The last event of a cancelled request."""


class Handle(Generic[R]):
    """Iterate it for events, await it for the result, `cancel()` it, or block a plain thread on `wait()`.

    Events are kept, so iteration may begin late and may be repeated. Awaiting raises the request's error, or
    `Cancelled`.
    """

    def __init__(self, request_id: str, cancel: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._cancel = cancel
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._wakers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def deliver(self, event: Event) -> None:
        """Called by the engine, from its thread; a terminal event must be the last."""
        with self._changed:
            assert not self.finished, f"{event} after the end of {self.request_id}"
            self._events.append(event)
            self._changed.notify_all()
            for loop, waker in self._wakers:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(waker.set)

    @property
    def finished(self) -> bool:
        return bool(self._events) and isinstance(self._events[-1], Done | Failed | CancelledEvent)

    def cancel(self) -> None:
        """Ask the engine to drop the request. Harmless after the end."""
        self._cancel(self.request_id)

    def wait(self, timeout_s: float | None = None) -> R:
        """Block the calling thread until the end; `TimeoutError` when it does not come in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.finished, timeout_s):
                raise TimeoutError(f"request {self.request_id} did not end within {timeout_s} s")
        return self._outcome()

    async def __aiter__(self) -> AsyncIterator[Event]:
        position, waker = 0, asyncio.Event()
        entry = (asyncio.get_running_loop(), waker)
        with self._changed:
            self._wakers.append(entry)
        try:
            while True:
                waker.clear()
                with self._changed:
                    fresh, ended = self._events[position:], self.finished
                position += len(fresh)
                for event in fresh:
                    yield event
                if ended:
                    return
                await waker.wait()
        finally:
            with self._changed:
                self._wakers.remove(entry)

    def __await__(self) -> Generator[Any, None, R]:
        return self._result().__await__()

    async def _result(self) -> R:
        async for _ in self:
            pass
        return self._outcome()

    def _outcome(self) -> R:
        last = self._events[-1]
        if isinstance(last, Failed):
            raise last.error
        if isinstance(last, CancelledEvent):
            raise Cancelled(f"request {self.request_id} was cancelled")
        assert isinstance(last, Done), last
        result: R = last.result
        return result
