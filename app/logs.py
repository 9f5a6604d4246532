"""The last lines that this process said, and who wants to hear the next ones. Any thread may add."""

from __future__ import annotations

import io
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime
from typing import Any, TextIO

from app.events import Event, PackMessage

MAX_LINES = 300
MAX_LISTENERS = 64
SIZE = {"cols": 120, "rows": 50}


class Logs:
    """`publish` tells those who subscribed, by client id."""

    def __init__(self, publish: Callable[[Event], None]) -> None:
        self._publish = publish
        self._entries: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._listeners: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        entry = {"t": datetime.now().isoformat(), "m": text}
        with self._lock:
            self._entries.append(entry)
            listeners = tuple(self._listeners)
        for client_id in listeners:
            self._publish(PackMessage(client_id, "logs", {"entries": [entry], "size": SIZE}))

    def subscribe(self, client_id: str, enabled: bool) -> None:
        """Of too many, those who came first go: their clients may be long gone."""
        with self._lock:
            self._listeners.pop(client_id, None)
            if enabled:
                self._listeners[client_id] = None
            while len(self._listeners) > MAX_LISTENERS:
                self._listeners.popitem(last=False)

    def entries(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._entries)


class LogLines(logging.Handler):
    """What the program logs."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        self._logs.add(f"{self.format(record)}\n")


class Tee(io.TextIOBase):
    """What packs print, which still goes where it went."""

    def __init__(self, stream: TextIO, logs: Logs) -> None:
        self._stream = stream
        self._logs = logs

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str) -> int:
        if text.strip():
            self._logs.add(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        """What a stream may have beside: `buffer`, `reconfigure` ..."""
        return getattr(self._stream, name)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
