"""The inputs that no user fills in: the prompt, the workflow, the node's own id."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from app.graph.parse import Node


class DynamicPrompt:
    """The prompt together with what expansions have added to it, as nodes that build loops ask for it."""

    def __init__(self, prompt: Mapping[str, Any]) -> None:
        self._original = prompt
        self._added: dict[str, Any] = {}
        self._nodes: dict[str, Node] = {}

    def add(self, node: Node, entry: Mapping[str, Any]) -> None:
        self._added[node.id] = entry
        self._nodes[node.id] = node

    def get_node(self, node_id: str) -> Any:
        if node_id in self._added:
            return self._added[node_id]
        return self._original[node_id]

    def has_node(self, node_id: str) -> bool:
        return node_id in self._added or node_id in self._original

    def get_real_node_id(self, node_id: str) -> str:
        return self._nodes[node_id].real_id if node_id in self._nodes else node_id

    def get_parent_node_id(self, node_id: str) -> str | None:
        return self._nodes[node_id].parent_id if node_id in self._nodes else None

    def get_display_node_id(self, node_id: str) -> str:
        return self._nodes[node_id].display_id if node_id in self._nodes else node_id

    def all_node_ids(self) -> set[str]:
        return {*self._original, *self._added}

    def get_original_prompt(self) -> Mapping[str, Any]:
        return self._original


def context_hidden(
    node: Node, prompt: DynamicPrompt, extra_data: Mapping[str, Any], sensitive: Mapping[str, Any]
) -> dict[str, Any]:
    """By name, for a node's context."""
    return {
        "prompt": prompt.get_original_prompt(),
        "dynprompt": prompt,
        "extra_pnginfo": extra_data.get("extra_pnginfo"),
        "unique_id": node.id,
        "comfy_usage_source": extra_data.get("comfy_usage_source"),
        **sensitive,
    }


def hidden_inputs(node: Node, hidden: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a node declares as inputs. Packs get copies, because some of them write into the prompt."""
    given = {slot.name: hidden.get(slot.type.lower()) for slot in node.slots if slot.is_automatic}
    return {
        name: copy.deepcopy(value) if node.spec.pack and isinstance(value, dict) else value
        for name, value in given.items()
    }
