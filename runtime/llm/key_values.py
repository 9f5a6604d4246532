"""The tensors behind the pages: one pool of keys and one of values for each attention layer.

A layer's pools appear when its shape is first seen, which a probe forward does at load.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, slots=True)
class LayerShape:
    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype

    @property
    def token_bytes(self) -> int:
        return self.heads * (self.key_width + self.value_width) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class KeyValues:
    num_pages: int
    page_size: int
    device: torch.device
    shapes: dict[int, LayerShape] = field(default_factory=dict)
    _pools: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def layer(self, index: int, shape: LayerShape) -> tuple[torch.Tensor, torch.Tensor]:
        """Both pools of a layer, [pages, heads, page size, width]."""
        if index not in self._pools:
            self.shapes[index] = shape
            self._pools[index] = (self._pool(shape, shape.key_width), self._pool(shape, shape.value_width))
        return self._pools[index]

    def _pool(self, shape: LayerShape, width: int) -> torch.Tensor:
        # Zeros, not empty: a padded position has weight 0, and 0 times what memory happens to hold may be
        # NaN.
        size = (self.num_pages, shape.heads, self.page_size, width)
        return torch.zeros(size, dtype=shape.dtype, device=self.device)
