"""`comfy.supported_models_base`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    BASE,
    ClipTarget,
) = named(
    "comfy.supported_models_base",
    "BASE",
    "ClipTarget",
)
