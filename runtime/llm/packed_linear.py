"""Linear layers for a CPU, whose weights lie in the order in which they are computed with, so that no call
packs them again.

Exact ones lie in oneDNN's block order; results differ from torch's own by rounding only. Half ones are kept
in float16 and computed with in float32: a step of few rows is bound by reading the weights, and these are
read in half the time. Each row comes out the same to the last bit whoever shares its batch.
"""

from __future__ import annotations

import psutil
import torch
from torch import nn

# The block order hardly depends on the row count; it is chosen for a decode step of this many rows.
_TYPICAL_ROWS = 16
# Weights are kept in both orders when they fit so many times into free memory.
_SMALL_SHARE = 8
_DTYPES = (torch.float32, torch.bfloat16)


class PackedLinear(nn.Module):
    """With `keeps_plain` a lone row uses the plain weights, which is faster in float32 and costs them once
    more.
    """

    def __init__(self, linear: nn.Linear, *, keeps_plain: bool) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.packed_bytes = linear.weight.numel() * linear.weight.element_size() * (1 + keeps_plain)
        # No buffers: packed tensors can neither be saved nor moved.
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _TYPICAL_ROWS)
        self._plain = linear.weight.detach() if keeps_plain else None
        # Public as in a linear layer: forwards of encoders ask it where and in what to compute.
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # x: [..., in] -> [..., out]
        if x.numel() == self.in_features and self._plain is not None:
            return nn.functional.linear(x, self._plain, self.bias)
        if x.numel() == 0:
            return x.new_empty(*x.shape[:-1], self.out_features)
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self.bias, "none", [], "")


class HalfLinear(nn.Module):
    """float32 in and out, float16 weights, sums in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.packed_bytes = linear.weight.numel() * torch.float16.itemsize
        self.bias = None if linear.bias is None else linear.bias.detach()
        self._packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.detach(), self.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # x: [..., in] -> [..., out]
        if x.numel() == 0:
            return x.new_empty(*x.shape[:-1], self.out_features)
        return torch.ops.quantized.linear_dynamic_fp16(x, self._packed)


def can_halve(device: torch.device) -> bool:
    """Whether this torch and this machine have the product of float32 rows and float16 weights."""
    has_kernel = "fbgemm" in torch.backends.quantized.supported_engines
    return device.type == "cpu" and has_kernel and torch.cpu._is_avx2_supported()


def pack(network: nn.Module, device: torch.device, *, halves: bool = False) -> None:
    """Replace plain linear layers in place, where this torch can; float32 ones by half ones if `halves`."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return
    weight_bytes = sum(each.numel() * each.element_size() for each in network.parameters())
    is_small = weight_bytes * _SMALL_SHARE < psutil.virtual_memory().available
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is not nn.Linear or child.weight.dtype not in _DTYPES:
                continue
            is_float = child.weight.dtype == torch.float32
            if halves and is_float and _fits_half(child.weight):
                setattr(parent, name, HalfLinear(child))
            else:
                setattr(parent, name, PackedLinear(child, keeps_plain=is_small and is_float))


def _fits_half(weight: torch.Tensor) -> bool:
    return bool(weight.abs().amax() <= torch.finfo(torch.float16).max)
