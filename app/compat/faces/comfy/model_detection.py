"""`comfy.model_detection`: names only; this program recognises models by the headers of their files."""

from __future__ import annotations

from app.compat.named import named

(
    unet_prefix_from_state_dict,
    model_config_from_unet,
    detect_unet_config,
    convert_config,
    count_blocks,
    unet_config_from_diffusers_unet,
    model_config_from_unet_config,
) = named(
    "comfy.model_detection",
    "unet_prefix_from_state_dict",
    "model_config_from_unet",
    "detect_unet_config",
    "convert_config",
    "count_blocks",
    "unet_config_from_diffusers_unet",
    "model_config_from_unet_config",
)
