"""Llama 4's pictures, for which transformers would ask for torchvision: tiles of one size and a small view.

Pixels are computed in the steps and number types of the original.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn import functional
from transformers import BatchFeature
from transformers.image_processing_base import ImageProcessingMixin
from transformers.image_utils import make_flat_list_of_images


class Llama4ImageProcessor(ImageProcessingMixin):
    """Reads and writes the settings of transformers' class of this name."""

    model_input_names: ClassVar[list[str]] = ["pixel_values"]

    def __init__(
        self,
        size: Mapping[str, int] = MappingProxyType({"height": 336}),
        max_patches: int = 16,
        resize_to_max_canvas: bool = False,
        image_mean: Sequence[float] = (0.5, 0.5, 0.5),
        image_std: Sequence[float] = (0.5, 0.5, 0.5),
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.size = dict(size)
        self.max_patches = max_patches
        self.resize_to_max_canvas = resize_to_max_canvas
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
                "pixel_values": torch.cat([tiles for tiles, _ in made]),
                "aspect_ratios": torch.tensor([shape for _, shape in made]),
            }
        )

    def _one(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
        # [3, height, width] -> [tiles, 3, side, side]
        size, side = (pixels.shape[1], pixels.shape[2]), self.size["height"]
        rows, columns = grid(size, side, self.max_patches, self.resize_to_max_canvas)
        fitted = _resize(pixels, self._fitting(size, (rows * side, columns * side)))
        missing = (0, columns * side - fitted.shape[2], 0, rows * side - fitted.shape[1])
        canvas = self._normalize(functional.pad(fitted, missing))
        tiles = canvas.unflatten(2, (columns, side)).unflatten(1, (rows, side))
        tiles = tiles.permute(1, 3, 0, 2, 4).flatten(0, 1)
        if rows * columns > 1:
            whole = self._normalize(_resize(pixels, (side, side)))
            tiles = torch.cat([tiles, whole[None]])
        return tiles.float(), (rows, columns)

    def _fitting(self, size: tuple[int, int], canvas: tuple[int, int]) -> tuple[int, int]:
        """How large the picture becomes on its canvas, keeping its shape."""
        height, width = canvas
        if not self.resize_to_max_canvas:
            height = min(max(size[0], self.size["height"]), height)
            width = min(max(size[1], self.size["height"]), width)
        scale = min(height / size[0], width / size[1])
        if width / size[1] < height / size[0]:
            return max(1, min(int(size[0] * scale), height)), width
        return height, max(1, min(int(size[1] * scale), width))

    def _normalize(self, pixels: torch.Tensor) -> torch.Tensor:
        mean, std = (
            torch.tensor(each, dtype=torch.bfloat16)[:, None, None]
            for each in (self.image_mean, self.image_std)
        )
        return (pixels.to(torch.bfloat16) * (1 / 255) - mean) / std


def grid(size: tuple[int, int], side: int, most: int, enlarges: bool) -> tuple[int, int]:
    """Rows and columns of tiles: what enlarges a picture least, or where nothing holds it shrinks it least;
    with `enlarges` what enlarges it most. Of several the one with the fewest tiles.
    """
    shapes = [(rows, columns) for rows in range(1, most + 1) for columns in range(1, most // rows + 1)]
    scales = {
        (rows, columns): min(rows * side / size[0], columns * side / size[1]) for rows, columns in shapes
    }
    growing = [each for each in scales.values() if each >= 1]
    chosen = (max if enlarges else min)(growing) if growing else max(scales.values())
    fitting = [shape for shape, scale in scales.items() if scale == chosen]
    return min(fitting, key=lambda shape: shape[0] * shape[1])


def _resize(pixels: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    resized: torch.Tensor = functional.interpolate(
        pixels.contiguous()[None], size, mode="bilinear", antialias=True
    )[0]
    return resized
