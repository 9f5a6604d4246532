"""Nodes that live in the editor alone: ComfyUI's own, and those of packs that many files use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REROUTES = frozenset({"Reroute", "Reroute (rgthree)"})
SETTERS = frozenset({"SetNode", "easy setNode"})
GETTERS = frozenset({"GetNode", "easy getNode"})
_OF_COMFYUI = frozenset({"Note", "MarkdownNote", "Reroute", "PrimitiveNode"})
_OF_PACKS = (
    REROUTES
    | SETTERS
    | GETTERS
    | frozenset(
        [
            "Anything Everywhere",
            "Anything Everywhere3",
            "Anything Everywhere?",
            "Bookmark (rgthree)",
            "Fast Actions Button (rgthree)",
            "Fast Bypasser (rgthree)",
            "Fast Groups Bypasser (rgthree)",
            "Fast Groups Muter (rgthree)",
            "Fast Muter (rgthree)",
            "Label (rgthree)",
            "Mute / Bypass Relay (rgthree)",
            "Mute / Bypass Repeater (rgthree)",
            "Node Collector (rgthree)",
            "Prompts Everywhere",
            "Random Unmuter (rgthree)",
        ]
    )
)


def is_virtual(node_type: str, definitions: Mapping[str, Any], strict: bool) -> bool:
    """A pack's node counts only where no server defines it; ComfyUI's editor alone knows no packs."""
    if node_type in _OF_COMFYUI:
        return True
    return not strict and node_type in _OF_PACKS and node_type not in definitions
