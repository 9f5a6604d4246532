"""Between the lists that travel on links and the values of one call: zip going in, collect coming out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.graph.parse import Node
from nodes.spec import Blocker, NodeResult

Items = tuple[Any, ...]
Outputs = tuple[Items, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What a finished node leaves: items by output slot, and what it shows."""

    outputs: Outputs
    ui: Mapping[str, Any] | None = None


def invocations(node: Node, inputs: Mapping[str, Items]) -> tuple[Mapping[str, Any], ...]:
    """One mapping for each call: shorter lists repeat their last item, an empty list means no call at all."""
    if node.spec.input_is_list:
        return ({name: list(items) for name, items in inputs.items()},)
    if not all(inputs.values()):
        return ()
    num_calls = max((len(items) for items in inputs.values()), default=1)
    return tuple(
        {name: items[min(i, len(items) - 1)] for name, items in inputs.items()} for i in range(num_calls)
    )


def blocker_in(node: Node, call: Mapping[str, Any]) -> Blocker | None:
    """The first value that forbids this call."""
    for value in call.values():
        if isinstance(value, Blocker):
            return value
        if node.spec.input_is_list and isinstance(value, list):
            for item in value:
                if isinstance(item, Blocker):
                    return item
    return None


def blocked(node: Node) -> NodeResult:
    """What consumers of a call that did not happen receive; the reason has been told already."""
    return NodeResult((Blocker(),) * len(node.spec.outputs))


def collected(node: Node, results: Sequence[NodeResult]) -> Entry:
    return Entry(
        tuple(_items(node, results, slot) for slot in range(len(node.spec.outputs))),
        merged_ui([result.ui for result in results if result.ui]),
    )


def _items(node: Node, results: Sequence[NodeResult], slot: int) -> Items:
    items: list[Any] = []
    for result in results:
        if not result.values and node.spec.is_output:
            items.append(None)
        elif slot >= len(result.values):
            raise ValueError(
                f"{node.spec.id} declares {len(node.spec.outputs)} outputs and returned {len(result.values)}"
            )
        elif node.spec.outputs[slot].is_list and not isinstance(result.values[slot], Blocker):
            items.extend(result.values[slot])
        else:
            items.append(result.values[slot])
    return tuple(items)


def merged_ui(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Of several calls: key by key, lists one after another."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: [item for part in parts for item in part.get(key, ())] for key in keys}
