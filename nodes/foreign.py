"""Calls code of packs so that nothing worse than an Exception comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


class ForeignExit(Exception):
    """The code tried to leave the process."""


def contained(function: Callable[[], R]) -> R:
    try:
        return function()
    except (SystemExit, KeyboardInterrupt) as error:
        raise ForeignExit(f"the pack raised {type(error).__name__}") from error
