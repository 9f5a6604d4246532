"""Videos' pixels are those of their frames as pictures, and what a video costs is bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from runtime.llm.api import Image, Video
from runtime.llm.processors.video import FrameProcessor

LEVEL = 1 / 255 / 0.26  # one step of a pixel, normalized


def noise(count: int, height: int, width: int) -> torch.Tensor:
    numbers = np.random.default_rng(3).integers(0, 256, (count, height, width, 3), dtype=np.uint8)
    return torch.from_numpy(numbers)


@pytest.mark.parametrize(("height", "width"), [(24, 40), (90, 50), (7, 9)])
@pytest.mark.parametrize("family", ["qwen2_vl"], indirect=True)
def test_a_still_is_what_its_picture_is(family: Any, height: int, width: int) -> None:
    frame = noise(1, height, width)
    processor = family.model.processor
    picture = processor.item(Image(frame[0])).inputs
    film = processor.item(Video(frame.expand(2, -1, -1, -1), (0.0, 0.5))).inputs
    assert film["video_grid_thw"].tolist() == picture["image_grid_thw"].tolist()
    worst = (film["pixel_values_videos"] - picture["pixel_values"]).abs().max().item()
    assert worst < 1.5 * LEVEL, "within what rounding to bytes does"


@pytest.mark.parametrize("family", ["qwen2_vl"], indirect=True)
def test_an_odd_last_frame_stands_twice(family: Any) -> None:
    frames = noise(5, 16, 16)
    processor = family.model.processor
    odd = processor.item(Video(frames, (0.0, 0.5, 1.0, 1.5, 2.0))).inputs
    even = processor.item(Video(torch.cat([frames, frames[-1:]]), (0.0, 0.5, 1.0, 1.5, 2.0, 2.5))).inputs
    assert torch.equal(odd["pixel_values_videos"], even["pixel_values_videos"])


@pytest.mark.parametrize("family", ["qwen3_vl"], indirect=True)
def test_a_single_frame_is_a_video_too(family: Any) -> None:
    item = family.model.processor.item(Video(noise(1, 24, 40), (0.0,)))
    assert item.inputs["video_grid_thw"][0, 0] == 1
    assert "<0.0 seconds>" in item.text


@pytest.mark.parametrize("family", ["qwen3_vl"], indirect=True)
def test_each_pair_of_frames_has_its_time_in_the_text(family: Any) -> None:
    item = family.model.processor.item(Video(noise(4, 24, 40), (1.0, 1.5, 2.5, 3.0)))
    assert [part.split(" seconds>")[0] for part in item.text.split("<|vision_end|>")[:-1]] == ["<1.2", "<2.8"]


@pytest.mark.parametrize("bounds_whole", [True, False])
def test_long_videos_have_smaller_frames(bounds_whole: bool) -> None:
    half = (0.5, 0.5, 0.5)
    most = 40_000 if bounds_whole else 400 * 400
    frames = FrameProcessor(4, 2, 2, 64, most, bounds_whole, half, half, 2.0, 4, 768)
    pixels = torch.zeros(1, 3, 400, 400, dtype=torch.uint8)
    short, long = (frames.resize(pixels.expand(count, -1, -1, -1)) for count in (2, 200))
    assert long[0].numel() < short[0].numel()
    positions = long.shape[0] // 2 * (long.shape[2] // 8) * (long.shape[3] // 8)
    assert positions <= (40_000 // 128 if bounds_whole else 128_000 * 0.9)
