"""Values of nodes as JSON that every client can read: what JSON lacks becomes null or text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def encode(value: Any) -> str:
    """Infinite and undefined numbers become null: one of them would make the whole text unreadable."""
    try:
        return json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
