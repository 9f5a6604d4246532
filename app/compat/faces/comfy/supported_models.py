"""`comfy.supported_models`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    SD15,
    SD20,
    SDXL,
    SDXLRefiner,
    SD3,
    Flux,
    FluxSchnell,
    HunyuanVideo,
    LTXV,
    WAN21_T2V,
    QwenImage,
) = named(
    "comfy.supported_models",
    "SD15",
    "SD20",
    "SDXL",
    "SDXLRefiner",
    "SD3",
    "Flux",
    "FluxSchnell",
    "HunyuanVideo",
    "LTXV",
    "WAN21_T2V",
    "QwenImage",
)
