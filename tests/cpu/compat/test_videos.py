"""Videos of packs: frames and sound in, a file, and the same frames and sound out."""

from __future__ import annotations

import importlib
import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

from app.compat.finder import install

install(())
latest: Any = importlib.import_module("comfy_api.latest")


def components(channels: int = 1) -> Any:
    """Eight frames that grow brighter, and a tone."""
    images = torch.linspace(0.1, 0.9, 8)[:, None, None, None].expand(8, 32, 48, 3)
    tone = torch.sin(torch.arange(16000) * 0.1)[None, None].expand(1, channels, -1) * 0.5
    return latest.Types.VideoComponents(
        images=images, frame_rate=Fraction(8), audio={"waveform": tone, "sample_rate": 16000}
    )


def test_frames_and_sound_survive_a_file(tmp_path: Path) -> None:
    pytest.importorskip("av")
    made = latest.InputImpl.VideoFromComponents(components())
    assert (made.get_dimensions(), made.get_frame_count(), made.get_duration()) == ((48, 32), 8, 1.0)
    path = str(tmp_path / "a.mp4")
    made.save_to(path, format=latest.Types.VideoContainer.MP4, metadata={"prompt": {"1": "x"}})
    read = latest.InputImpl.VideoFromFile(path)
    assert isinstance(read, latest.Input.Video)
    assert read.get_dimensions() == (48, 32)
    found = read.get_components()
    assert found.frame_rate == 8
    torch.testing.assert_close(found.images, made.get_components().images, atol=0.03, rtol=0)
    assert found.metadata["prompt"] == '{"1": "x"}'
    assert found.audio["sample_rate"] == 16000
    assert abs(found.audio["waveform"].abs().max().item() - 0.5) < 0.1


def test_a_file_of_which_nothing_is_asked_is_copied_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("av")
    path, copy = tmp_path / "a.mp4", io.BytesIO()
    latest.InputImpl.VideoFromComponents(components(channels=2)).save_to(str(path))
    latest.InputImpl.VideoFromFile(str(path)).save_to(copy)
    assert copy.getvalue() == path.read_bytes()
    assert latest.InputImpl.VideoFromFile(copy).get_frame_count() == 8


def test_names_of_containers_and_codecs_are_choices() -> None:
    types = latest.Types
    assert types.VideoContainer.as_input() == ["auto", "mp4"]
    assert types.VideoContainer.get_extension("auto") == "mp4"
    assert types.VideoCodec("h264") is types.VideoCodec.H264
    with pytest.raises(ValueError, match="avi"):
        types.VideoContainer.get_extension("avi")
    with pytest.raises(AttributeError, match=r"comfy_api\.latest\.Nothing"):
        _ = latest.Nothing
