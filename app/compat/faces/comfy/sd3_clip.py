"""`comfy.sd3_clip`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    SD3ClipModel,
    T5XXLModel,
) = named(
    "comfy.sd3_clip",
    "SD3ClipModel",
    "T5XXLModel",
)
