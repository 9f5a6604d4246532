"""May this output feed that input? ComfyUI's rule, with the tricks that packs play on it."""

from __future__ import annotations

from typing import Any

ANYTHING = frozenset({"*", "COMFY_MATCHTYPE_V3"})


def types_match(received: Any, expected: Any) -> bool:
    """Types are names, or the list of choices of an old-style combo.

    The comparison is `not (a != b)`, because packs make a wildcard of a str whose `!=` is always False.
    """
    if not (received != expected):  # noqa: SIM202
        return True
    if isinstance(received, list) or isinstance(expected, list):
        return expected == "COMBO" or received == "COMBO" or "*" in (received, expected)
    offered, wanted = _parts(received), _parts(expected)
    return bool(ANYTHING & offered or ANYTHING & wanted or offered & wanted)


def _parts(union: str) -> frozenset[str]:
    return frozenset(part.strip() for part in union.split(","))
