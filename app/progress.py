"""How far the nodes of each prompt are, as one connection is told. Pure: the caller says how late it is.

A state repeats every node of its prompt. So that a thousand nodes are not told a thousand times over, states
of large prompts keep a distance, and what was held back is owed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.events import NodeName

INTERVAL_S = 0.1
SMALL = 32

State = Mapping[str, Mapping[str, Any]]


class ProgressStates:
    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, dict[str, Any]]] = {}
        self._told: dict[str, float] = {}
        self._owed: set[str] = set()

    def note(self, prompt_id: str, node: NodeName, value: float, maximum: float, state: str) -> None:
        entry = {"value": value, "max": maximum, "state": state, **named(prompt_id, node)}
        self._nodes.setdefault(prompt_id, {})[node.node_id] = entry
        self._owed.add(prompt_id)

    def maximum(self, prompt_id: str, node: NodeName) -> float:
        known = self._nodes.get(prompt_id, {}).get(node.node_id)
        return known["max"] if known else 1

    def due(self, prompt_id: str, now: float) -> State | None:
        """None when it was told a moment ago."""
        is_small = len(self._nodes[prompt_id]) <= SMALL
        if not is_small and now - self._told.get(prompt_id, -INTERVAL_S) < INTERVAL_S:
            return None
        return self._tell(prompt_id, now)

    def settle(self, prompt_id: str, now: float) -> State | None:
        """What is owed; None when nothing is."""
        return self._tell(prompt_id, now) if prompt_id in self._owed else None

    def forget(self, prompt_id: str) -> None:
        self._nodes.pop(prompt_id, None)
        self._told.pop(prompt_id, None)
        self._owed.discard(prompt_id)

    @property
    def owed(self) -> tuple[str, ...]:
        return tuple(self._owed)

    def _tell(self, prompt_id: str, now: float) -> State:
        self._owed.discard(prompt_id)
        self._told[prompt_id] = now
        return self._nodes[prompt_id]


def named(prompt_id: str, node: NodeName) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "prompt_id": prompt_id,
        "display_node_id": node.display_id,
        "parent_node_id": node.parent_id,
        "real_node_id": node.node_id,
    }
