"""`comfy.sdxl_clip`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    SDXLClipModel,
    SDXLRefinerClipModel,
    SDXLClipG,
    SDXLTokenizer,
) = named(
    "comfy.sdxl_clip",
    "SDXLClipModel",
    "SDXLRefinerClipModel",
    "SDXLClipG",
    "SDXLTokenizer",
)
