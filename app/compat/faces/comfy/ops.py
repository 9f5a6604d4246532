"""`comfy.ops`: layers for a pack's own networks. They are torch's, and cast their weights where told to."""

from __future__ import annotations

from typing import Any

import torch


class disable_weight_init:
    Linear = torch.nn.Linear
    Conv1d = torch.nn.Conv1d
    Conv2d = torch.nn.Conv2d
    Conv3d = torch.nn.Conv3d
    GroupNorm = torch.nn.GroupNorm
    LayerNorm = torch.nn.LayerNorm
    RMSNorm = torch.nn.RMSNorm
    ConvTranspose1d = torch.nn.ConvTranspose1d
    ConvTranspose2d = torch.nn.ConvTranspose2d
    Embedding = torch.nn.Embedding

    @classmethod
    def conv_nd(cls, dims: int, *args: Any, **kwargs: Any) -> torch.nn.Module:
        layers = {2: cls.Conv2d, 3: cls.Conv3d}
        if dims not in layers:
            raise ValueError(f"convolutions of 2 and 3 dimensions are served, not of {dims}")
        return layers[dims](*args, **kwargs)


class _CastLinear(torch.nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        weight, bias = cast_bias_weight(self, input)
        return torch.nn.functional.linear(input, weight, bias)


class _CastConv2d(torch.nn.Conv2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        weight, bias = cast_bias_weight(self, input)
        return self._conv_forward(input, weight, bias)


class _CastLayerNorm(torch.nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        weight, bias = (None, None) if self.weight is None else cast_bias_weight(self, input)
        return torch.nn.functional.layer_norm(input, self.normalized_shape, weight, bias, self.eps)


class _CastGroupNorm(torch.nn.GroupNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        weight, bias = (None, None) if self.weight is None else cast_bias_weight(self, input)
        return torch.nn.functional.group_norm(input, self.num_groups, weight, bias, self.eps)


class manual_cast(disable_weight_init):
    """Linear, Conv2d, LayerNorm and GroupNorm compute in the type of their input."""

    Linear = _CastLinear
    Conv2d = _CastConv2d
    LayerNorm = _CastLayerNorm
    GroupNorm = _CastGroupNorm


def cast_bias_weight(
    module: Any,
    input: torch.Tensor | None = None,
    dtype: Any = None,
    device: Any = None,
    bias_dtype: Any = None,
) -> Any:
    dtype = dtype or (None if input is None else input.dtype)
    device = device or (None if input is None else input.device)
    bias = getattr(module, "bias", None)
    moved = None if bias is None else bias.to(device=device, dtype=bias_dtype or dtype)
    return module.weight.to(device=device, dtype=dtype), moved


def cast_to_input(weight: torch.Tensor, input: torch.Tensor, **_options: Any) -> torch.Tensor:
    return weight.to(device=input.device, dtype=input.dtype)


def pick_operations(weight_dtype: Any, compute_dtype: Any, *_args: Any, **_options: Any) -> Any:
    return disable_weight_init if compute_dtype is None or weight_dtype == compute_dtype else manual_cast
