"""Reading JSON that may hold anything: what is of another kind counts as empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def sequence(raw: Any) -> Sequence[Any]:
    return raw if isinstance(raw, list | tuple) else ()


def mappings(raw: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in sequence(raw) if isinstance(entry, dict)]


def whole(raw: Any, otherwise: int) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else otherwise
