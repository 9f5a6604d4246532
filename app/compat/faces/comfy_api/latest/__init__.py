"""`comfy_api.latest`: the newest form of the public interface for packs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from app.compat.faces.comfy_api import input as Input
from app.compat.faces.comfy_api.latest import io, ui
from app.compat.v3.api import Caching, ComfyAPI, ComfyAPISync, ComfyExtension
from app.compat.v3.replace import NodeReplace

ComfyAPIBase = ComfyAPI
IO, UI = io, ui


def __getattr__(name: str) -> Any:
    """Both know tensors, and a pack's schema alone needs no torch."""
    if name == "Types":
        return import_module("comfy_api.util")
    if name == "InputImpl":
        return import_module("comfy_api.input_impl")
    raise AttributeError(
        f"Treadle does not serve comfy_api.latest.{name}; docs/compat.md lists what it serves"
    )


__all__ = [
    "IO",
    "UI",
    "Caching",
    "ComfyAPI",
    "ComfyAPIBase",
    "ComfyAPISync",
    "ComfyExtension",
    "Input",
    "NodeReplace",
    "io",
    "ui",
]
