"""Who is served by a lane at the moment, and how everybody's request can be ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from runtime.platform.handle import CancelledEvent, Event, Failed

L = TypeVar("L")


class LiveRequests(ABC, Generic[L]):
    """What both kinds of lanes are to their engine; `_live` is by the id of the request."""

    _live: dict[str, L]

    @property
    def is_idle(self) -> bool:
        return not self._live

    def has(self, request_id: str) -> bool:
        return request_id in self._live

    def cancel(self, request_id: str) -> None:
        self._end(request_id, CancelledEvent(request_id))

    def fail(self, request_id: str, error: BaseException) -> None:
        self._end(request_id, Failed(request_id, error))

    def cancel_all(self) -> None:
        for request_id in list(self._live):
            self.cancel(request_id)

    def fail_all(self, error: BaseException) -> None:
        for request_id in list(self._live):
            self.fail(request_id, error)

    @abstractmethod
    def _end(self, request_id: str, event: Event) -> None:
        """Tell the request that it has ended and forget it; nothing for one that is not there."""
