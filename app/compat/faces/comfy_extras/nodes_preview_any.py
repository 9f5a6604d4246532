"""`comfy_extras.nodes_preview_any`: those of its nodes that this program has."""

from __future__ import annotations

from app.compat.classes import core_class_getter

__getattr__ = core_class_getter(
    "comfy_extras.nodes_preview_any",
    "PreviewAny",
)
