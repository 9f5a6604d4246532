"""Packs' plain functions: one at a time for a pack, in a thread of its own, so that one that never ends costs
its own pack and nobody else.

It lives in the event loop, and says which packs are late and which jobs wait for one.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from app.graph.attempt import Attempt, Attempts

LATE_S = 1.0
GRACE_S = 2.0


class PackTurns:
    """Threads start with their pack's first call and live as long as the process."""

    def __init__(self, initializer: Callable[[], object] = lambda: None, late_s: float = LATE_S) -> None:
        """`initializer` runs first in every thread."""
        self._initializer = initializer
        self._late_s = late_s
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._threads: dict[str, _PackThread] = {}
        self._late: Counter[str] = Counter()
        self._waiting: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._changed: Callable[[], object] = lambda: None

    def watch(self, changed: Callable[[], object]) -> None:
        """`changed()` when `late` or `waiting` answers differently."""
        self._changed = changed

    @property
    def late(self) -> frozenset[str]:
        """Packs of which one call has lasted, or has waited to begin, for a while."""
        return frozenset(+self._late)

    @property
    def waiting(self) -> frozenset[str]:
        """Jobs that wait for a late pack."""
        return frozenset(job for pack in self.late for job in +self._waiting[pack])

    async def run(self, pack: str, job_id: str, function: Callable[[], Any]) -> Attempt:
        """Cancelling it asks the function to end, then makes it, then leaves it and its turn alone."""
        lock = self._locks[pack]
        with self.waits(pack, job_id):
            await lock.acquire()
        late = self._late_after(pack)
        next(late)
        try:
            attempts = Attempts(contextvars.copy_context(), function)
            future = self._thread(pack).submit(attempts)
        except BaseException:
            self._turn_over(pack, late)
            raise
        future.add_done_callback(lambda _: self._turn_over(pack, late))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await _patiently(future)
            if not future.done():
                attempts.interrupt()
                await _patiently(future)
            raise

    @contextmanager
    def waits(self, pack: str, job_id: str) -> Iterator[None]:
        self._count(pack, job_id, 1)
        try:
            yield
        finally:
            self._count(pack, job_id, -1)

    @contextmanager
    def begins(self, pack: str, has_begun: Callable[[], bool]) -> Iterator[None]:
        """While inside, a call that has not begun after a while makes its pack late."""
        late = self._late_after(pack, lambda: not has_begun())
        next(late)
        try:
            yield
        finally:
            next(late, None)

    def _late_after(self, pack: str, is_late: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Its first step starts the clock, its second takes back what the clock did."""
        marked: list[str] = []

        def mark() -> None:
            if is_late():
                marked.append(pack)
                self._late[pack] += 1
                self._changed()

        timer = asyncio.get_running_loop().call_later(self._late_s, mark)
        yield
        timer.cancel()
        if marked:
            self._late[pack] -= 1
            self._changed()

    def _turn_over(self, pack: str, late: Iterator[None]) -> None:
        next(late, None)
        self._locks[pack].release()

    def _count(self, pack: str, job_id: str, change: int) -> None:
        self._waiting[pack][job_id] += change
        if not self._waiting[pack][job_id]:
            del self._waiting[pack][job_id]
        if self._late[pack]:
            self._changed()

    def _thread(self, pack: str) -> _PackThread:
        if pack not in self._threads:
            self._threads[pack] = _PackThread(pack, self._initializer)
        return self._threads[pack]


async def _patiently(future: asyncio.Future[Any]) -> None:
    """A second cancel must not cut the wait short."""
    loop = asyncio.get_running_loop()
    end = loop.time() + GRACE_S
    while not future.done() and loop.time() < end:
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future], timeout=end - loop.time())


class _PackThread:
    """A daemon: the process can end although a pack does not."""

    def __init__(self, pack: str, initializer: Callable[[], object]) -> None:
        self._calls: queue.SimpleQueue[tuple[Attempts, Callable[[Attempt], None]]] = queue.SimpleQueue()
        self._initializer = initializer
        threading.Thread(target=self._turn, name=f"pack {pack}", daemon=True).start()

    def submit(self, attempts: Attempts) -> asyncio.Future[Attempt]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Attempt] = loop.create_future()

        def tell(attempt: Attempt) -> None:
            # the loop may have closed while a pack went on
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(future.set_result, attempt)

        self._calls.put((attempts, tell))
        return future

    def _turn(self) -> None:
        self._initializer()
        while True:
            attempts, tell = self._calls.get()
            tell(attempts.run())
