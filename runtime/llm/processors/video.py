"""Videos for Qwen's towers: frames chosen by time, resized, and cut into patches of two frames each.

It stands where transformers has a video processor, which would ask for torchvision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import BatchFeature
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as smart_resize_whole
from transformers.video_utils import VideoMetadata

from runtime.llm import frames

# What Qwen's own programs let a video have, in features.
_MOST_FEATURES = 128_000 * 9 // 10


@dataclass(frozen=True, slots=True)
class FrameProcessor:
    """A frame has from `min_pixels` to `max_pixels`; with `bounds_whole` all of them have so together."""

    patch_size: int
    temporal_patch_size: int
    merge_size: int
    min_pixels: int
    max_pixels: int
    bounds_whole: bool
    image_mean: Sequence[float]
    image_std: Sequence[float]
    fps: float
    min_frames: int
    max_frames: int
    model_input_names: tuple[str, ...] = ("pixel_values_videos", "video_grid_thw")

    def __call__(self, videos: Sequence[Any], times: Sequence[Sequence[float]], **_: Any) -> BatchFeature:
        """`videos` are arrays [n, height, width, 3], uint8, with the `times` of their frames."""
        made = [self._one(torch.as_tensor(each), when) for each, when in zip(videos, times, strict=True)]
        return BatchFeature(
            {
                "pixel_values_videos": torch.cat([patches for patches, _, _ in made]),
                "video_grid_thw": torch.tensor([grid for _, grid, _ in made]),
                "video_metadata": [metadata for _, _, metadata in made],
            }
        )

    def _one(
        self, video: torch.Tensor, times: Sequence[float]
    ) -> tuple[torch.Tensor, tuple[int, int, int], VideoMetadata]:
        chosen = frames.sample(times, self.fps, self.min_frames, self.max_frames)
        rate = frames.rate(times)
        # By these numbers the frames' times come out again where they are divided by the rate.
        metadata = VideoMetadata(len(times), rate, frames_indices=[times[at] * rate for at in chosen])
        pixels = self.resize(video[chosen].permute(0, 3, 1, 2)).float() / 255
        mean, std = torch.tensor(self.image_mean), torch.tensor(self.image_std)
        return *self._patches((pixels - mean[:, None, None]) / std[:, None, None]), metadata

    def resize(self, pixels: torch.Tensor) -> torch.Tensor:
        # [n, 3, height, width], uint8
        count, _, height, width = pixels.shape
        factor = self.patch_size * self.merge_size
        if self.bounds_whole:
            size = smart_resize_whole(
                max(count, self.temporal_patch_size),
                height,
                width,
                self.temporal_patch_size,
                factor,
                self.min_pixels,
                self.max_pixels,
            )
        else:
            share = _MOST_FEATURES * factor**2 * self.temporal_patch_size // count
            most = max(min(self.max_pixels, share), self.min_pixels * 105 // 100)
            size = smart_resize(height, width, factor, self.min_pixels, most)
        return torch.nn.functional.interpolate(pixels.contiguous(), size, mode="bicubic", antialias=True)

    def _patches(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int, int]]:
        # [n, 3, height, width] -> [t * h * w, 3 * temporal * patch * patch]
        missing = -len(pixels) % self.temporal_patch_size
        pixels = torch.cat([pixels, pixels[-1:].expand(missing, -1, -1, -1)])
        time, patch, merge = self.temporal_patch_size, self.patch_size, self.merge_size
        grid = (len(pixels) // time, pixels.shape[2] // patch, pixels.shape[3] // patch)
        cut = pixels.reshape(grid[0], time, 3, grid[1] // merge, merge, patch, grid[2] // merge, merge, patch)
        return cut.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(grid[0] * grid[1] * grid[2], -1), grid


def load(folder: Path, images: Any, *, bounds_whole: bool) -> FrameProcessor:
    """`images` is the folder's image processor, whose patches videos have too."""
    said = _settings(folder)
    factor = images.patch_size * images.merge_size
    size = said.get("size") or {}
    return FrameProcessor(
        patch_size=said.get("patch_size", images.patch_size),
        temporal_patch_size=said.get("temporal_patch_size", images.temporal_patch_size),
        merge_size=said.get("merge_size", images.merge_size),
        min_pixels=size.get("shortest_edge") or said.get("min_pixels") or 128 * factor**2,
        max_pixels=size.get("longest_edge") or said.get("max_pixels") or 768 * factor**2,
        bounds_whole=bounds_whole,
        image_mean=tuple(said.get("image_mean", images.image_mean)),
        image_std=tuple(said.get("image_std", images.image_std)),
        fps=said.get("fps") or 2.0,
        min_frames=said.get("min_frames") or 4,
        max_frames=said.get("max_frames") or 768,
    )


def _settings(folder: Path) -> Mapping[str, Any]:
    own, all_parts = folder / "video_preprocessor_config.json", folder / "processor_config.json"
    if own.is_file():
        said: Mapping[str, Any] = json.loads(own.read_text())
        return said
    if all_parts.is_file():
        said = json.loads(all_parts.read_text()).get("video_processor") or {}
        return said
    return {}
