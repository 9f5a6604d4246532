"""`comfy_api.input`: types for annotations. `Input` of comfy_api.latest has them under their short names."""

from __future__ import annotations

from typing import Any

_TENSORS = ("ImageInput", "MaskInput", "Image", "Mask")
_DICTS = ("AudioInput", "LatentInput", "Audio", "Latent")


def __getattr__(name: str) -> Any:
    if name in _TENSORS:
        import torch

        return torch.Tensor
    if name in _DICTS:
        return dict[str, Any]
    if name in ("VideoInput", "Video"):
        from app.compat.v3.video import VideoInput

        return VideoInput
    raise AttributeError(
        f"Treadle does not serve comfy_api.input.{name}; docs/compat.md lists what it serves"
    )
