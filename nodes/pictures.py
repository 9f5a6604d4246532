"""Between picture files and IMAGE and MASK tensors. It knows no node and chooses no path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError
from PIL.PngImagePlugin import PngInfo

from nodes.context import NodeInputError
from nodes.room import need_room
from runtime.llm.api import Image as Media

SAVED_COMPRESSION = 4
PREVIEW_COMPRESSION = 1
_NO_MASK_SIZE = 64


def read_image(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """IMAGE [B, H, W, 3] and MASK [B, H, W] = 1 - alpha; an animation gives a batch of frames of one size."""
    images: list[torch.Tensor] = []
    masks: list[torch.Tensor | None] = []
    with _opened(path) as file:
        need_room(getattr(file, "n_frames", 1), file.height, file.width, 3)
        for frame in ImageSequence.Iterator(file):
            picture = ImageOps.exif_transpose(frame)
            if images and (picture.height, picture.width) != images[0].shape[:2]:
                continue
            images.append(_rgb(picture))
            masks.append(_mask(picture))
    has_alpha = any(mask is not None for mask in masks)
    opaque = torch.zeros(images[0].shape[:2]) if has_alpha else _no_mask()
    return torch.stack(images), torch.stack([opaque if mask is None else mask for mask in masks])


def read_channel(path: Path, channel: str) -> torch.Tensor:
    """One channel as MASK [1, H, W]; "alpha" is 1 - alpha, and 64x64 zeros where the file has none."""
    with _opened(path) as file:
        picture = ImageOps.exif_transpose(file)
        if channel == "alpha":
            mask = _mask(picture)
            return (_no_mask() if mask is None else mask)[None]
        return _rgb(picture)[None, ..., ("red", "green", "blue").index(channel)].clone()


def as_picture(image: torch.Tensor) -> Image.Image:
    """image [H, W, C] in 0..1, C is 1, 3 or 4."""
    channels = image.shape[-1]
    if channels not in (1, 3, 4):
        raise NodeInputError(f"a picture needs 1, 3 or 4 channels, this image has {channels}")
    pixels = (
        (image.detach().cpu().to(torch.float32) * 255).clamp(0, 255).nan_to_num(0).to(torch.uint8).numpy()
    )
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels)


def as_media(image: torch.Tensor) -> tuple[Media, ...]:
    """image [B, H, W, C] in 0..1 as a language model takes it, one by one."""
    return tuple(Media(torch.from_numpy(np.array(as_picture(each).convert("RGB")))) for each in image)


def png_metadata(prompt: Any, extra: Any) -> PngInfo | None:
    """The prompt and the workflow as text chunks, by which an editor opens the picture again."""
    chunks = text_metadata(prompt, extra)
    if not chunks:
        return None
    info = PngInfo()
    for key, text in chunks.items():
        info.add_text(key, text)
    return info


def text_metadata(prompt: Any, extra: Any) -> dict[str, str]:
    """`prompt` first, then what the client sent along (`workflow`), as JSON."""
    chunks = {} if prompt is None else {"prompt": json.dumps(prompt)}
    return chunks | {key: json.dumps(value) for key, value in (extra or {}).items()}


def _opened(path: Path) -> Image.Image:
    try:
        return Image.open(path)
    except UnidentifiedImageError:
        raise NodeInputError(f"{path.name} is not a picture that can be read") from None


def _rgb(picture: Image.Image) -> torch.Tensor:
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        deep = np.asarray(picture, dtype=np.float32) / 65535
        return torch.from_numpy(np.stack([deep.clip(0, 1)] * 3, axis=-1))
    return torch.from_numpy(np.asarray(picture.convert("RGB"), dtype=np.float32) / 255)


def _mask(picture: Image.Image) -> torch.Tensor | None:
    if not picture.has_transparency_data:
        return None
    alpha = np.asarray(picture.convert("RGBA").getchannel("A"), dtype=np.float32) / 255
    return 1 - torch.from_numpy(alpha)


def _no_mask() -> torch.Tensor:
    return torch.zeros(_NO_MASK_SIZE, _NO_MASK_SIZE)
