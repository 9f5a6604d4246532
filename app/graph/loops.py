"""An event loop in a thread of its own for each pack with coroutines, so that none blocks the server's."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")

log = logging.getLogger(__name__)


class PackLoops:
    """Loops start with their pack's first coroutine and live as long as the process."""

    def __init__(self, initializer: Callable[[], object] = lambda: None) -> None:
        """`initializer` runs first in every thread."""
        self._initializer = initializer
        self._loops: dict[str, asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()

    async def run(self, pack: str, function: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """In the caller's context. Cancelling it cancels the coroutine without waiting for its end."""
        future = asyncio.run_coroutine_threadsafe(function(), self._loop_of(pack))
        return await asyncio.wrap_future(future)

    def _loop_of(self, pack: str) -> asyncio.AbstractEventLoop:
        with self._lock:
            if pack not in self._loops:
                loop = self._loops[pack] = asyncio.new_event_loop()
                threading.Thread(
                    target=_turn, args=(pack, loop, self._initializer), name=f"pack {pack}", daemon=True
                ).start()
            return self._loops[pack]


def _turn(pack: str, loop: asyncio.AbstractEventLoop, initializer: Callable[[], object]) -> None:
    initializer()
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        try:
            loop.run_forever()
        # a SystemExit in a task that the pack started ends the turn, and must not end the loop
        except BaseException:
            log.exception("a task of the pack %s ended badly", pack)
