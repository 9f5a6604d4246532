"""Weights that a file keeps as 8-bit floats, each with one scale: multiplied out when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.platform.errors import Unsupported

if TYPE_CHECKING:
    import torch

_SCALES = ("scale_weight", "weight_scale")
# read only by kernels that multiply in 8 bits
_REMARKS = ("scale_input", "input_scale", "comfy_quant")


def without_scales(tensors: dict[str, torch.Tensor], file_name: str) -> dict[str, torch.Tensor]:
    """Weights with a scale beside them, multiplied out; the others as they are."""
    plain: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        stem, _, kind = name.rpartition(".")
        if name == "scaled_fp8" or kind in _SCALES or kind in _REMARKS:
            continue
        scale = next((tensors[f"{stem}.{s}"] for s in _SCALES if f"{stem}.{s}" in tensors), None)
        if kind == "weight" and scale is not None:
            if scale.numel() != 1 or not tensor.is_floating_point():
                raise Unsupported(
                    f"{file_name} is quantised in blocks; supported is one scale a tensor (fp8)"
                )
            tensor = tensor.float() * scale.float().reshape(())
        plain[name] = tensor
    return plain
