"""`comfy_api.latest`: the newest form of the public interface for packs."""

from __future__ import annotations

from app.compat.faces.comfy_api import input as Input
from app.compat.faces.comfy_api.latest import io, ui
from app.compat.v3.api import Caching, ComfyAPI, ComfyAPISync, ComfyExtension
from app.compat.v3.replace import NodeReplace

ComfyAPIBase = ComfyAPI
IO, UI = io, ui

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
