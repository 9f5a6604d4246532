"""Bytes that a client sent into pictures, films and sounds for the language runtime. It blocks."""

from __future__ import annotations

import io
import wave
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import ImageOps, ImageSequence

from app.errors import BadRequest
from app.pictures import open_picture

if TYPE_CHECKING:
    import torch
    from PIL import Image as Pictures

    from runtime.llm.api import Audio, Image, Video

_MAX_FRAMES = 2048
_DEFAULT_FRAME_MS = 100


def image(content: bytes) -> Image:
    """Upright, on white where it is transparent."""
    from runtime.llm.api import Image as Made

    with open_picture(io.BytesIO(content)) as picture:
        return Made(_pixels(ImageOps.exif_transpose(picture)))


def video(content: bytes) -> Video:
    """An animated GIF, WebP or PNG; with the package av also films."""
    import torch

    from runtime.llm.api import Video as Made

    frames, times = _animation(content) if _is_picture(content) else _film(content)
    return Made(torch.stack(frames), tuple(times))


def audio(content: bytes) -> Audio:
    """A WAV of 16 bits; with the package av also what FFmpeg reads."""
    import torch

    from runtime.llm.api import Audio as Made

    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        samples, rate = _wav(content)
    else:
        samples, rate = _sound(content)
    return Made(torch.from_numpy(samples), rate)


def _pixels(picture: Pictures.Image) -> torch.Tensor:
    import torch
    from PIL import Image as Pictures

    if picture.has_transparency_data:
        picture = Pictures.alpha_composite(
            Pictures.new("RGBA", picture.size, "white"), picture.convert("RGBA")
        )
    return torch.from_numpy(np.array(picture.convert("RGB")))


def _is_picture(content: bytes) -> bool:
    return content.startswith((b"GIF8", b"\x89PNG")) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")


def _animation(content: bytes) -> tuple[list[torch.Tensor], list[float]]:
    frames: list[torch.Tensor] = []
    times: list[float] = []
    now = 0.0
    with open_picture(io.BytesIO(content)) as picture:
        for frame in ImageSequence.Iterator(picture):
            if len(frames) == _MAX_FRAMES:
                raise BadRequest(f"A video has at most {_MAX_FRAMES} frames")
            frames.append(_pixels(frame))
            times.append(now)
            now += frame.info.get("duration", _DEFAULT_FRAME_MS) / 1000
    return frames, times


def _film(content: bytes) -> tuple[list[torch.Tensor], list[float]]:
    import torch

    av = _needs_av("videos other than animated GIF, WebP and PNG")
    frames: list[torch.Tensor] = []
    times: list[float] = []
    try:
        with av.open(io.BytesIO(content)) as container:
            for frame in container.decode(video=0):
                if len(frames) == _MAX_FRAMES:
                    raise BadRequest(f"A video has at most {_MAX_FRAMES} frames")
                frames.append(torch.from_numpy(frame.to_ndarray(format="rgb24")))
                times.append(float(frame.time or 0.0))
    except (av.error.FFmpegError, IndexError) as error:
        raise BadRequest("This file is not a video that can be read", details=str(error)) from None
    if not frames:
        raise BadRequest("This video has no frames")
    return frames, times


def _wav(content: bytes) -> tuple[np.ndarray, int]:
    try:
        with wave.open(io.BytesIO(content)) as reader:
            channels, width, rate = reader.getnchannels(), reader.getsampwidth(), reader.getframerate()
            data = reader.readframes(reader.getnframes())
    except (wave.Error, EOFError) as error:
        raise BadRequest("This file is not a sound that can be read", details=str(error)) from None
    if width != 2:
        raise BadRequest(f"A WAV should have 16 bits a sample, not {8 * width}")
    samples = np.frombuffer(data, "<i2").astype(np.float32).reshape(-1, channels).mean(1) / 32768
    return samples, rate


def _sound(content: bytes) -> tuple[np.ndarray, int]:
    av = _needs_av("sounds other than WAV")
    try:
        with av.open(io.BytesIO(content)) as container:
            rate = container.streams.audio[0].rate
            mono = av.AudioResampler(format="flt", layout="mono", rate=rate)
            parts = [
                each.to_ndarray()[0] for frame in container.decode(audio=0) for each in mono.resample(frame)
            ]
    except (av.error.FFmpegError, IndexError) as error:
        raise BadRequest("This file is not a sound that can be read", details=str(error)) from None
    return np.concatenate(parts or [np.zeros(0, np.float32)]), rate


def _needs_av(what: str) -> Any:
    if find_spec("av") is None:
        raise BadRequest(f"Reading {what} needs the package av: pip install av")
    return import_module("av")
