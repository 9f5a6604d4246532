"""The outside state that nodes depend on: fingerprints that classes compute, files that inputs name."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from app.graph.dynamic import nested
from app.graph.keys import Key
from app.graph.parse import Node
from nodes.spec import Library, Slot

log = logging.getLogger(__name__)

Call = Callable[[Node, Callable[[], Any]], Awaitable[Any]]


async def stamps_of(
    nodes: Iterable[Node], library: Library, hidden: Callable[[Node], Mapping[str, Any]], call: Call
) -> dict[str, Key]:
    """`call(node, function)` runs the class's code where it may run. `hidden` gives hidden inputs by name."""
    stamps: dict[str, Key] = {}
    for node in nodes:
        files = [slot for slot in node.slots if slot.folder and slot.name in node.constants]
        if not files and node.spec.fingerprint is None:
            continue
        parts: list[Any] = [_file_stamp(node, slot, library) for slot in files]
        if node.spec.fingerprint is not None:
            parts.append(await _fingerprint(node, library, hidden(node), call))
        stamps[node.id] = _digest(parts)
    return stamps


def _file_stamp(node: Node, slot: Slot, library: Library) -> str | None:
    assert slot.folder is not None, slot
    return library.stamp(slot.folder, str(node.constants[slot.name]))


async def _fingerprint(node: Node, library: Library, hidden: Mapping[str, Any], call: Call) -> Any:
    """NaN, which no digest accepts, where the class fails to say."""
    linked = dict.fromkeys(node.links)
    given = {**nested(node.slots, {**linked, **node.constants}), **hidden}

    def ask() -> Any:
        assert node.spec.fingerprint is not None
        return node.spec.fingerprint(library, **given)

    try:
        return await call(node, ask)
    except Exception:
        log.warning("the fingerprint of node %s (%s) failed", node.id, node.spec.id, exc_info=True)
        return float("nan")


def _digest(parts: list[Any]) -> Key:
    """None for what does not equal itself, or cannot be compared at all."""
    try:
        if any(bool(part != part) for part in parts):
            return None
        return hashlib.sha256(pickle.dumps(parts)).hexdigest()
    except Exception:
        return None
