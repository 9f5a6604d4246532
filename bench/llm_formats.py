"""The number formats that bench.llm_precision compares: how each replaces a network's linear layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from runtime.llm.packed_linear import HalfLinear, PackedLinear

REFERENCE = "float32"
_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Format:
    """`replace` makes another layer of a linear one, or of those for which `only` holds; the rest lie packed
    in float32. `finish` may change the whole network afterwards.
    """

    dtype: torch.dtype = torch.float32
    replace: Callable[[nn.Linear], nn.Module] | None = None
    only: Callable[[str], bool] | None = None
    finish: Callable[[nn.Module], None] | None = None

    def pack(self, network: nn.Module, *_: object, **__: object) -> None:
        """In place of `packed_linear.pack`."""
        for path, parent in list(network.named_modules()):
            for name, child in list(parent.named_children()):
                if type(child) is nn.Linear:
                    is_meant = self.only is None or self.only(f"{path}.{name}")
                    setattr(parent, name, (self.replace if is_meant and self.replace else _packed)(child))
        if self.finish is not None:
            self.finish(network)


class BrainLinear(nn.Module):
    """bfloat16 product of float32 rows; rows come out as float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._inner = PackedLinear(linear.bfloat16(), keeps_plain=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._inner(x.bfloat16()).float()


class SplitLinear(nn.Module):
    """Rows and weights as sums of two bfloat16 numbers, three products of four: nearly float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        high = weight.bfloat16()
        low = (weight - high.float()).bfloat16()
        # [high; low] of rows against both
        self._both = torch.ops.mkldnn._reorder_linear_weight(torch.cat([high, low], 1).contiguous(), 16)
        self._high = torch.ops.mkldnn._reorder_linear_weight(high, 16)
        self._bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = x.bfloat16()
        low = (x - high.float()).bfloat16()
        product = torch.ops.mkldnn._linear_pointwise
        main = product(torch.cat([high, high], -1), self._both, None, "none", [], "")
        out = main.float() + product(low, self._high, None, "none", [], "").float()
        return out if self._bias is None else out + self._bias


class DynamicInt8Linear(nn.Module):
    """int8 weights, a scale an output; rows are rounded to int8 by their own range."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scales = (weight.abs().amax(1) / 127).clamp_min(1e-12).double()
        zeros = torch.zeros(len(scales), dtype=torch.long)
        quantized = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(quantized, linear.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, False)


class BlockInt4Linear(nn.Module):
    """4 bits a weight in blocks of 32 with a scale and a smallest value, as in a GGUF file of kind Q4_1;
    rows are bfloat16.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._outputs, inputs = linear.weight.shape
        blocks = linear.weight.detach().view(self._outputs, inputs // _BLOCK, _BLOCK)
        low = blocks.amin(-1)
        scale = ((blocks.amax(-1) - low) / 15).clamp_min(1e-12)
        codes = ((blocks - low[..., None]) / scale[..., None]).round().clamp(0, 15)
        codes = codes.to(torch.int32).view(self._outputs, inputs)
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
        # the kernel counts codes from -8
        pairs = torch.stack([scale, low + 8 * scale], -1).transpose(0, 1)
        self._scales = pairs.contiguous().bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1]).bfloat16()
        out = torch.ops.aten._weight_int4pack_mm_for_cpu(rows, self._packed, _BLOCK, self._scales)
        return out.float().view(*x.shape[:-1], self._outputs)


def _packed(linear: nn.Linear) -> nn.Module:
    if linear.weight.dtype == torch.float16:
        return linear
    return PackedLinear(linear, keeps_plain=linear.weight.dtype == torch.float32)


def _compile_feed_forward(network: nn.Module) -> None:
    for layer in network.model.layers:
        layer.mlp = torch.compile(layer.mlp, dynamic=True)


FORMATS = {
    REFERENCE: Format(),
    "float16 weights": Format(replace=HalfLinear),
    "float16": Format(torch.float16),
    "bfloat16": Format(torch.bfloat16),
    "bfloat16 layers": Format(replace=BrainLinear),
    "bfloat16 MLPs": Format(replace=BrainLinear, only=lambda name: ".mlp." in name),
    "bfloat16 output": Format(replace=BrainLinear, only=lambda name: "lm_head" in name),
    "bfloat16 split": Format(replace=SplitLinear),
    "int8 dynamic": Format(replace=DynamicInt8Linear),
    "int4 blocks": Format(replace=BlockInt4Linear, only=lambda name: "lm_head" not in name),
    "compiled MLPs": Format(replace=lambda linear: linear, finish=_compile_feed_forward),
}
