"""`comfy.comfy_types`: names of socket types, and base classes for annotations."""

from __future__ import annotations

from app.compat.faces.comfy.comfy_types.node_typing import (
    IO,
    CheckLazyMixin,
    ComfyNodeABC,
    FileLocator,
    InputTypeDict,
    InputTypeOptions,
)

__all__ = ["IO", "CheckLazyMixin", "ComfyNodeABC", "FileLocator", "InputTypeDict", "InputTypeOptions"]
