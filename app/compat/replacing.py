"""Nodes of classes that are gone become nodes of those that packs name instead; a function of the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Replacement = Mapping[str, Any]


def replaced(
    prompt: Mapping[str, Any],
    replacements: Mapping[str, Sequence[Replacement]],
    is_known: Callable[[str], bool],
) -> dict[str, Any]:
    """A new prompt. Of several replacements for a class, the first whose class exists is taken."""
    chosen: dict[str, Replacement] = {}
    for id, node in prompt.items():
        old = node.get("class_type") if isinstance(node, dict) else None
        if isinstance(old, str) and not is_known(old):
            candidates = (one for one in replacements.get(old, ()) if is_known(one["new_node_id"]))
            if (found := next(candidates, None)) is not None:
                chosen[id] = found
    if not chosen:
        return dict(prompt)
    slots = {id: _slots(replacement) for id, replacement in chosen.items()}
    return {id: _node(node, chosen.get(id), slots) for id, node in prompt.items()}


def _slots(replacement: Replacement) -> dict[int, int]:
    return {one["old_idx"]: one["new_idx"] for one in replacement.get("output_mapping") or ()}


def _node(node: Any, replacement: Replacement | None, slots: Mapping[str, Mapping[int, int]]) -> Any:
    if not isinstance(node, dict):
        return node
    given = node.get("inputs")
    inputs = {name: _moved(value, slots) for name, value in given.items()} if isinstance(given, dict) else {}
    if replacement is None:
        return {**node, "inputs": inputs}
    return {**node, "class_type": replacement["new_node_id"], "inputs": _mapped(inputs, replacement)}


def _moved(value: Any, slots: Mapping[str, Mapping[int, int]]) -> Any:
    """A link to a replaced node, at its new output."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[0] in slots:
        return [value[0], slots[value[0]].get(value[1], value[1])]
    return value


def _mapped(inputs: Mapping[str, Any], replacement: Replacement) -> dict[str, Any]:
    mapped = {}
    for one in replacement.get("input_mapping") or ():
        if "set_value" in one:
            mapped[one["new_id"]] = one["set_value"]
        elif one.get("old_id") in inputs:
            mapped[one["new_id"]] = inputs[one["old_id"]]
    return mapped
