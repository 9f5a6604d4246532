"""`comfy.controlnet`: ControlNets; the nodes ControlNetLoader and ControlNetApplyAdvanced serve them."""

from __future__ import annotations

from app.compat.named import named

(
    ControlBase,
    ControlLora,
    ControlNet,
    ControlNetSD35,
    QwenFunControlNet,
    StrengthType,
    T2IAdapter,
    broadcast_image_to,
    load_controlnet,
    load_controlnet_state_dict,
    load_t2i_adapter,
) = named(
    "comfy.controlnet",
    "ControlBase",
    "ControlLora",
    "ControlNet",
    "ControlNetSD35",
    "QwenFunControlNet",
    "StrengthType",
    "T2IAdapter",
    "broadcast_image_to",
    "load_controlnet",
    "load_controlnet_state_dict",
    "load_t2i_adapter",
)
