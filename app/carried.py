"""Workflows that pictures carry: the prompt that made a PNG or WebP, and the editor's document beside it.

Only headers are read, no picture is decoded. It blocks.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from PIL import Image, UnidentifiedImageError

_PNG = b"\x89PNG\r\n\x1a\n"


class CarriesNothing(ValueError):
    """The text says what was looked for."""


@dataclass(frozen=True, slots=True)
class Carried:
    """`prompt` is in API format, `workflow` the editor's own; at least one of them is there."""

    prompt: dict[str, Any] | None
    workflow: dict[str, Any] | None


def is_picture(data: bytes) -> bool:
    """Whether the bytes begin like one of the formats that can carry a workflow."""
    return data.startswith(_PNG) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def carried(data: bytes) -> Carried:
    try:
        with Image.open(io.BytesIO(data)) as image:
            texts = {**dict(_texts_of_animation(data)), **dict(_texts(image))}
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise CarriesNothing(f"the picture cannot be read: {error}") from None
    except struct.error:
        raise CarriesNothing("the picture cannot be read: its header is cut off") from None
    prompt, workflow = _object(texts.get("prompt")), _object(texts.get("workflow"))
    if prompt is None and workflow is None:
        raise CarriesNothing("the picture carries no workflow: it has neither 'prompt' nor 'workflow' in it")
    return Carried(prompt, workflow)


def _texts(image: Image.Image) -> Iterator[tuple[str, str]]:
    """PNG has named chunks; in a WebP the values of EXIF tags begin with the name and a colon."""
    for name, text in image.info.items():
        if isinstance(name, str) and isinstance(text, str):
            yield name, text
    for text in image.getexif().values():
        if isinstance(text, str):
            name, colon, rest = text.partition(":")
            if colon:
                yield name.lower(), rest


def _texts_of_animation(data: bytes) -> Iterator[tuple[str, str]]:
    """Animated PNGs of ComfyUI have chunks named comf behind the pictures: a name, a zero byte, the text."""
    at = len(_PNG)
    while data.startswith(_PNG) and at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"comf":
            name, _, text = data[at + 8 : at + 8 + length].decode("latin-1").partition("\0")
            yield name, text
        # a chunk's length, its kind and its checksum have four bytes each
        at += 12 + length


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
