"""`comfy_api.input`: types for annotations."""

from __future__ import annotations

from typing import Any, TypedDict

from torch import Tensor

ImageInput = Tensor
MaskInput = Tensor
LatentInput = dict[str, Any]
CurveInput = Any
RangeInput = Any


class AudioInput(TypedDict):
    """`waveform` is [B, channels, samples]."""

    waveform: Tensor
    sample_rate: int


__all__ = ["AudioInput", "CurveInput", "ImageInput", "LatentInput", "MaskInput", "RangeInput"]
