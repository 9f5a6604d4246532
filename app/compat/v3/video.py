"""Videos as packs hand them on: a file, or frames and sound. Reading and writing needs the extra `media`."""

from __future__ import annotations

import io
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any

import torch


class VideoContainer(StrEnum):
    AUTO = "auto"
    MP4 = "mp4"

    @classmethod
    def as_input(cls) -> list[str]:
        return [member.value for member in cls]

    @classmethod
    def get_extension(cls, value: str) -> str:
        """Without a dot. Raises ValueError for a container that is none of these."""
        return "mp4" if cls(value) in (cls.AUTO, cls.MP4) else ""


class VideoCodec(StrEnum):
    AUTO = "auto"
    H264 = "h264"

    @classmethod
    def as_input(cls) -> list[str]:
        return [member.value for member in cls]


@dataclass(slots=True)
class VideoComponents:
    """`images` [T, H, W, 3] in 0..1; `audio` {"waveform" [1, C, N], "sample_rate"} or None."""

    images: torch.Tensor
    frame_rate: Fraction
    audio: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class VideoInput(ABC):
    @abstractmethod
    def get_components(self) -> VideoComponents: ...

    def save_to(
        self,
        path: str | io.BytesIO,
        format: VideoContainer = VideoContainer.AUTO,
        codec: VideoCodec = VideoCodec.AUTO,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """MP4 with H.264 and AAC."""
        VideoContainer(format), VideoCodec(codec)
        _write(self.get_components(), path, metadata)

    def get_stream_source(self) -> str | io.BytesIO:
        buffer = io.BytesIO()
        self.save_to(buffer)
        buffer.seek(0)
        return buffer

    def get_dimensions(self) -> tuple[int, int]:
        """Width and height."""
        images = self.get_components().images
        return images.shape[2], images.shape[1]

    def get_frame_count(self) -> int:
        return len(self.get_components().images)

    def get_frame_rate(self) -> Fraction:
        return self.get_components().frame_rate

    def get_duration(self) -> float:
        return float(self.get_frame_count() / self.get_frame_rate())


class VideoFromComponents(VideoInput):
    def __init__(self, components: VideoComponents) -> None:
        self._components = components

    def get_components(self) -> VideoComponents:
        return self._components


class VideoFromFile(VideoInput):
    """A path, or a file in memory."""

    def __init__(self, file: str | io.BytesIO) -> None:
        self._file = file

    def get_stream_source(self) -> str | io.BytesIO:
        if isinstance(self._file, io.BytesIO):
            self._file.seek(0)
        return self._file

    def get_components(self) -> VideoComponents:
        return _read(self.get_stream_source())

    def get_dimensions(self) -> tuple[int, int]:
        with _av().open(self.get_stream_source()) as container:
            stream = container.streams.video[0]
            return stream.width, stream.height

    def save_to(
        self,
        path: str | io.BytesIO,
        format: VideoContainer = VideoContainer.AUTO,
        codec: VideoCodec = VideoCodec.AUTO,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """The file as it is, where nothing about it is asked to change."""
        source = self.get_stream_source()
        as_it_is = format == VideoContainer.AUTO and codec == VideoCodec.AUTO and not metadata
        if not as_it_is:
            super().save_to(path, format, codec, metadata)
        elif isinstance(source, str) and isinstance(path, str):
            shutil.copyfile(source, path)
        else:
            _copy(source, path)


def _av() -> ModuleType:
    try:
        return import_module("av")
    except ImportError as error:
        raise ImportError("reading and writing videos needs PyAV: pip install 'treadle[media]'") from error


def _read(source: str | io.BytesIO) -> VideoComponents:
    with _av().open(source) as container:
        if not container.streams.video:
            raise ValueError("the file holds no video")
        rate = Fraction(container.streams.video[0].average_rate or 1)
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        metadata = dict(container.metadata)
    images = torch.stack([torch.from_numpy(frame) for frame in frames]).float() / 255
    return VideoComponents(images, rate, _sound(source), metadata)


def _sound(source: str | io.BytesIO) -> dict[str, Any] | None:
    if isinstance(source, io.BytesIO):
        source.seek(0)
    with _av().open(source) as container:
        if not container.streams.audio:
            return None
        rate = container.streams.audio[0].rate
        resampler = _av().AudioResampler(format="fltp")
        parts = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    samples = torch.cat([torch.from_numpy(part.to_ndarray()) for part in parts], dim=1)
    return {"waveform": samples[None], "sample_rate": rate}


def _write(video: VideoComponents, path: str | io.BytesIO, metadata: Mapping[str, Any] | None) -> None:
    """H.264 halves the colours of neighbours, so an odd last row or column is left out."""
    av = _av()
    images = (video.images[:, :, :, :3].clamp(0, 1) * 255).round().to(torch.uint8).cpu()
    height, width = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    with av.open(path, "w", format="mp4", options={"movflags": "use_metadata_tags"}) as container:
        for key, value in (metadata or {}).items():
            container.metadata[key] = json.dumps(value)
        pictures = container.add_stream("libx264", rate=video.frame_rate)
        pictures.width, pictures.height, pictures.pix_fmt = width, height, "yuv420p"
        sound = None
        if video.audio is not None:
            sound = container.add_stream(
                "aac", rate=int(video.audio["sample_rate"]), layout=_layout(video.audio)
            )
        for image in images[:, :height, :width].contiguous():
            container.mux(pictures.encode(av.VideoFrame.from_ndarray(image.numpy(), format="rgb24")))
        container.mux(pictures.encode(None))
        if sound is not None:
            assert video.audio is not None
            samples = video.audio["waveform"][0].float().cpu().contiguous().numpy()
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout=_layout(video.audio))
            frame.sample_rate = int(video.audio["sample_rate"])
            container.mux(sound.encode(frame))
            container.mux(sound.encode(None))


def _layout(audio: Mapping[str, Any]) -> str:
    channels = audio["waveform"].shape[1]
    if channels not in (1, 2):
        raise ValueError(f"sound of a video has one or two channels, this has {channels}")
    return "mono" if channels == 1 else "stereo"


def _copy(source: str | io.BytesIO, path: str | io.BytesIO) -> None:
    if isinstance(source, str):
        with open(source, "rb") as file:
            data = file.read()
    else:
        data = source.getvalue()
    if isinstance(path, str):
        with open(path, "wb") as file:
            file.write(data)
    else:
        path.write(data)
