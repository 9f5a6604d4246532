"""A node's function tried out: whatever it raises becomes a value, and another thread may make it end."""

from __future__ import annotations

import contextvars
import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodes.context import JobInterrupted


class NodeExit(Exception):
    """The node's code tried to leave the process."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Errors travel as values: a future cannot hold a StopIteration, and a SystemExit would end its loop."""

    value: Any = None
    error: BaseException | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def attempt(function: Callable[[], Any]) -> Attempt:
    try:
        return Attempt(function())
    except (Exception, JobInterrupted) as error:
        return Attempt(error=error)
    except BaseException as error:
        return Attempt(error=exit_of(error))


def exit_of(error: BaseException) -> NodeExit:
    return NodeExit(f"the node raised {type(error).__name__}").with_traceback(error.__traceback__)


class Attempts:
    """One call in a thread that others may interrupt: JobInterrupted is raised wherever its code is."""

    def __init__(self, context: contextvars.Context, function: Callable[[], Any]) -> None:
        self._context = context
        self._function = function
        self._lock = threading.Lock()
        self._thread: int | None = None

    def run(self) -> Attempt:
        try:
            with self._lock:
                self._thread = threading.get_ident()
            made = self._context.run(attempt, self._function)
            self._close()
        except JobInterrupted as error:
            # it came too late for the function, between two lines of this one
            made = Attempt(error=error)
            self._close()
        return made

    def interrupt(self) -> None:
        """Python code sees it at its next step, a call that waits in C when that returns. Once at most."""
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, JobInterrupted)

    def _close(self) -> None:
        """From here on the thread belongs to the next call."""
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, None)
            self._thread = None


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """None takes back what has not been raised yet."""
    pointer = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), pointer)
