"""How long a request's owner waits for what, told to whoever keeps such figures. It decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from runtime.llm.api import Token
from runtime.platform.handle import Done, Event, Started

# From the question to its start; from there to the first token, which includes encoding media and computing
# the prompt; from the question to the first token; from token to token; from the question to the end.
Span = Literal["queue", "prefill", "first_token", "between_tokens", "whole"]
OnTime = Callable[[Span, float], None]


class Stopwatch:
    """Passes a request's events on; called by one thread at a time."""

    def __init__(self, deliver: Callable[[Event], None], on_time: OnTime) -> None:
        self._deliver = deliver
        self._on_time = on_time
        self._asked = self._started = time.perf_counter()
        self._token = 0.0

    def __call__(self, event: Event) -> None:
        self._measure(event, time.perf_counter())
        self._deliver(event)

    def _measure(self, event: Event, now: float) -> None:
        match event:
            case Started():
                self._started = now
                self._on_time("queue", now - self._asked)
            case Token() if not self._token:
                self._on_time("prefill", now - self._started)
                self._on_time("first_token", now - self._asked)
                self._token = now
            case Token():
                self._on_time("between_tokens", now - self._token)
                self._token = now
            case Done():
                self._on_time("whole", now - self._asked)
