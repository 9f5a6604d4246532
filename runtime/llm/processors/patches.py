"""Kimi K2.5's pictures, for which transformers would ask for torchvision: as they are, unless too large."""

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


# The name under which transformers' files ask for it.
class Kimi_K25ImageProcessor(ImageProcessingMixin):
    """Reads and writes the settings of transformers' class of this name."""

    model_input_names: ClassVar[list[str]] = ["pixel_values", "image_grid_thw"]

    def __init__(
        self,
        size: Mapping[str, int] = MappingProxyType({"max_height": 512, "max_width": 512}),
        max_patches: int = 16384,
        patch_size: int = 14,
        merge_size: int = 2,
        image_mean: Sequence[float] = (0.5, 0.5, 0.5),
        image_std: Sequence[float] = (0.5, 0.5, 0.5),
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.size = dict(size)
        self.max_patches = max_patches
        self.patch_size = patch_size
        self.merge_size = merge_size
        self.image_mean = tuple(image_mean)
        self.image_std = tuple(image_std)

    def __call__(self, images: Sequence[Any], **_: Any) -> BatchFeature:
        """`images` are arrays [height, width, 3], uint8."""
        made = [
            self._one(torch.from_numpy(np.array(each)).permute(2, 0, 1))
            for each in make_flat_list_of_images(images)
        ]
        return BatchFeature(
            {
                "pixel_values": torch.cat([patches for patches, _ in made]),
                "image_grid_thw": torch.tensor([grid for _, grid in made]),
            }
        )

    def _one(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int, int]]:
        # [3, height, width] -> [patches, 3, patch, patch]
        patch, factor = self.patch_size, self.patch_size * self.merge_size
        height, width = self.fitting(pixels.shape[1], pixels.shape[2])
        fitted = functional.interpolate(
            pixels.contiguous()[None], (height, width), mode="bicubic", antialias=True
        )[0]
        padded = functional.pad(fitted, (0, -width % factor, 0, -height % factor)).float() / 255
        mean, std = (torch.tensor(each)[:, None, None] for each in (self.image_mean, self.image_std))
        cut = ((padded - mean) / std).unflatten(2, (-1, patch)).unflatten(1, (-1, patch))
        return cut.permute(1, 3, 0, 2, 4).flatten(0, 1), (1, cut.shape[1], cut.shape[3])

    def fitting(self, height: int, width: int) -> tuple[int, int]:
        """The size in pixels at which a picture has no more patches, in all and a side, than it may."""
        patches = max(1, height // self.patch_size) * max(1, width // self.patch_size)
        side = self.size["max_height"] * self.patch_size
        scale = min(1.0, math.sqrt(self.max_patches / patches), side / height, side / width)
        return min(max(1, int(height * scale)), side), min(max(1, int(width * scale)), side)
