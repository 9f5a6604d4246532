"""`comfy_extras.nodes_clip_sdxl`: those of its nodes that this program has."""

from __future__ import annotations

from app.compat.classes import core_class_getter
from app.compat.named import named

(CLIPTextEncodeSDXLRefiner,) = named("comfy_extras.nodes_clip_sdxl", "CLIPTextEncodeSDXLRefiner")

__getattr__ = core_class_getter(
    "comfy_extras.nodes_clip_sdxl",
    "CLIPTextEncodeSDXL",
)
