"""Phi-4-multimodal's pictures, for which transformers would ask for torchvision: square crops of a picture on
white ground, a small view of the whole, and which patches show something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn import functional
from transformers import BatchFeature
from transformers.image_processing_base import ImageProcessingMixin
from transformers.image_utils import make_flat_list_of_images

_LEAST_PIXELS = 10


class Phi4MultimodalImageProcessor(ImageProcessingMixin):
    """Reads and writes the settings of transformers' class of this name."""

    model_input_names: ClassVar[list[str]] = ["image_pixel_values", "image_sizes", "image_attention_mask"]

    def __init__(
        self,
        size: Mapping[str, int] = MappingProxyType({"height": 448, "width": 448}),
        patch_size: int = 14,
        dynamic_hd: int = 36,
        image_mean: Sequence[float] = (0.5, 0.5, 0.5),
        image_std: Sequence[float] = (0.5, 0.5, 0.5),
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.size = dict(size)
        self.patch_size = patch_size
        self.dynamic_hd = dynamic_hd
        self.image_mean = tuple(image_mean)
        self.image_std = tuple(image_std)

    def __call__(self, images: Sequence[Any], **_: Any) -> BatchFeature:
        """`images` are arrays [height, width, 3], uint8; those with fewer crops are filled up."""
        flat = make_flat_list_of_images(images)
        made = [self._one(torch.from_numpy(np.array(each)).permute(2, 0, 1)) for each in flat]
        most = max(len(crops) for crops, _, _ in made)
        return BatchFeature(
            {
                "image_pixel_values": torch.stack([_filled(crops, most, 0) for crops, _, _ in made]),
                "image_attention_mask": torch.stack([_filled(masks, most, 1) for _, masks, _ in made]),
                "image_sizes": torch.tensor([size for _, _, size in made]),
                "num_img_tokens": [self._count(masks, size) for _, masks, size in made],
            }
        )

    def _one(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, tuple[int, int]]:
        # [3, height, width] -> [1 + crops, 3, side, side], [1 + crops, patches, patches]
        side, patch = self.size["height"], self.patch_size
        rows, columns = grid(pixels.shape[1], pixels.shape[2], side, self.dynamic_hd)
        size = (rows * side, columns * side)
        ratio = min(size[0] / pixels.shape[1], size[1] / pixels.shape[2])
        if size[1] / pixels.shape[2] < size[0] / pixels.shape[1]:
            height, width = int(pixels.shape[1] * ratio), size[1]
        else:
            height, width = size[0], int(pixels.shape[2] * ratio)
        if min(height, width) < _LEAST_PIXELS:
            raise ValueError("it is far longer one way than the other")
        fitted = functional.interpolate(
            pixels.contiguous()[None], (height, width), mode="bilinear", antialias=True
        )[0]
        padded = functional.pad(fitted, (0, size[1] - width, 0, size[0] - height), value=255)
        mean, std = (torch.tensor(each)[:, None, None] for each in (self.image_mean, self.image_std))
        whole = (padded.float() / 255 - mean) / std
        shows = torch.ones(size[0] // patch, size[1] // patch)
        shows[len(shows) - (size[0] - height) // patch :] = 0
        shows[:, shows.shape[1] - (size[1] - width) // patch :] = 0
        small = functional.interpolate(whole[None], (side, side), mode="bicubic")
        crops = whole.unflatten(2, (columns, side)).unflatten(1, (rows, side)).permute(1, 3, 0, 2, 4)
        masks = shows.unflatten(1, (columns, -1)).unflatten(0, (rows, -1)).transpose(1, 2).flatten(0, 1)
        return torch.cat([small, crops.flatten(0, 1)]), torch.cat([torch.ones_like(masks[:1]), masks]), size

    def _count(self, masks: torch.Tensor, size: tuple[int, int]) -> int:
        """The features: of every other patch that shows something, one a row more, and as of the whole."""
        across = size[1] // self.size["width"]
        each = masks[1:, ::2, ::2]
        base = each.shape[1]
        return base * base + 1 + base + int(each.sum()) + int(each[::across, :, 0].sum())


def grid(height: int, width: int, side: int, most: int) -> tuple[int, int]:
    """Rows and columns of crops: as many as a picture fills, or those nearest to its shape."""
    rows, columns = math.ceil(height / side), math.ceil(width / side)
    if rows * columns <= most:
        return rows, columns
    shapes = [(across, down) for across in range(1, most + 1) for down in range(1, most // across + 1)]
    best, least = (1, 1), math.inf
    for across, down in sorted(shapes, key=lambda shape: shape[0] * shape[1]):
        difference = abs(width / height - across / down)
        fills = width * height > 0.5 * side * side * across * down
        if difference < least or (difference == least and fills):
            best, least = (across, down), difference
    return best[1], best[0]


def _filled(crops: torch.Tensor, count: int, value: float) -> torch.Tensor:
    return torch.cat([crops, crops.new_full((count - len(crops), *crops.shape[1:]), value)])
