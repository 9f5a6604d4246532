"""`comfy_extras.nodes_upscale_model`: names only."""

from __future__ import annotations

from app.compat.named import named

UpscaleModelLoader, ImageUpscaleWithModel = named(
    "comfy_extras.nodes_upscale_model", "UpscaleModelLoader", "ImageUpscaleWithModel"
)
