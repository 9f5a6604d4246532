"""`comfy.clip_vision`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    load,
    ClipVisionModel,
    Output,
    clip_preprocess,
    load_clipvision_from_sd,
) = named(
    "comfy.clip_vision",
    "load",
    "ClipVisionModel",
    "Output",
    "clip_preprocess",
    "load_clipvision_from_sd",
)
