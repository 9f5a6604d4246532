"""`comfy_api.v0_0_2`: an older form of the public interface, which is part of the newest."""

from __future__ import annotations

from app.compat.faces.comfy_api import input as Input
from app.compat.faces.comfy_api.latest import io, ui
from app.compat.v3.api import ComfyAPI, ComfyAPISync, ComfyExtension

IO, UI = io, ui

__all__ = ["IO", "UI", "ComfyAPI", "ComfyAPISync", "ComfyExtension", "Input", "io", "ui"]
