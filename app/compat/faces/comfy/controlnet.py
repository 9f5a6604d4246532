"""`comfy.controlnet`: ControlNets; the nodes ControlNetLoader and ControlNetApplyAdvanced serve them."""

from __future__ import annotations

from app.compat.named import named

(
    ControlBase,
    ControlNet,
    ControlLora,
    T2IAdapter,
    load_controlnet,
    load_t2i_adapter,
    broadcast_image_to,
    StrengthType,
) = named(
    "comfy.controlnet",
    "ControlBase",
    "ControlNet",
    "ControlLora",
    "T2IAdapter",
    "load_controlnet",
    "load_t2i_adapter",
    "broadcast_image_to",
    "StrengthType",
)
