"""`comfy.lora`: LoRAs, which this program adds by their file (`comfy.sd.load_lora_for_models`)."""

from __future__ import annotations

from app.compat.named import named

(
    load_lora,
    model_lora_keys_unet,
    model_lora_keys_clip,
    calculate_weight,
    LORA_CLIP_MAP,
    pad_tensor_to_shape,
) = named(
    "comfy.lora",
    "load_lora",
    "model_lora_keys_unet",
    "model_lora_keys_clip",
    "calculate_weight",
    "LORA_CLIP_MAP",
    "pad_tensor_to_shape",
)
