"""`comfy.ldm.util`: what may be missing."""

from __future__ import annotations

from typing import Any


def exists(x: Any) -> bool:
    return x is not None


def default(val: Any, d: Any) -> Any:
    """`d` may be a function that makes the value."""
    if val is not None:
        return val
    return d() if callable(d) else d
