"""A thread and the SQLite connection that only it uses. What waits meanwhile shares the next transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

R = TypeVar("R")
Work = Callable[[sqlite3.Connection], R]


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    work: Work[Any]
    answer: asyncio.Future[Any]

    def settle(self, value: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(value)
        else:
            self.answer.set_exception(error)


_Outcome = tuple[_Call, Any, Exception | None]


class DatabaseThread:
    """Calls come from the event loop that opened it, and are done in their order."""

    def __init__(self, name: str, calls_at_once: int) -> None:
        self._name = name
        self._calls_at_once = calls_at_once
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def open(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Raises what `connect` raises in the thread."""
        self._loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._run, args=(connect, opened), name=self._name, daemon=True
        )
        self._thread.start()
        await opened

    async def call(self, work: Work[R]) -> R:
        assert self._thread is not None, "the database is not open"
        answer: asyncio.Future[R] = self._loop.create_future()
        self._calls.put(_Call(work, answer))
        return await answer

    async def close(self) -> None:
        """After what was asked for already."""
        self._calls.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _run(self, connect: Callable[[], sqlite3.Connection], opened: asyncio.Future[None]) -> None:
        try:
            connection = connect()
        # the caller of `open` answers it
        except Exception as error:
            self._loop.call_soon_threadsafe(_Call(lambda _: None, opened).settle, None, error)
            return
        self._loop.call_soon_threadsafe(opened.set_result, None)
        try:
            while calls := self._next():
                outcomes = _done(connection, calls)
                if not self._loop.is_closed():
                    self._loop.call_soon_threadsafe(_tell, outcomes)
        finally:
            connection.close()

    def _next(self) -> list[_Call]:
        """All that wait, up to the limit; empty when there will be no more."""
        calls: list[_Call] = []
        while len(calls) < self._calls_at_once and (not calls or not self._calls.empty()):
            call = self._calls.get()
            if call is None:
                # it comes again, behind the last call
                self._calls.put(None)
                break
            calls.append(call)
        return calls


def _done(connection: sqlite3.Connection, calls: list[_Call]) -> list[_Outcome]:
    """Should one of them fail, all is undone and each gets a transaction of its own.

    What nobody waits for any more is not begun.
    """
    try:
        with connection:
            return [(call, call.work(connection), None) for call in calls if not call.answer.done()]
    # the callers answer it
    except Exception as error:
        if len(calls) == 1:
            return [(calls[0], None, error)]
    return [outcome for call in calls for outcome in _done(connection, [call])]


def _tell(outcomes: Iterable[_Outcome]) -> None:
    for call, value, error in outcomes:
        call.settle(value, error)
