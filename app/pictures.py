"""Pictures re-encoded for clients: smaller formats, single channels, masks on originals. It blocks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

from PIL import Image, UnidentifiedImageError
from PIL.PngImagePlugin import PngInfo

from app.errors import BadRequest

_FORMATS = {"webp": "WEBP", "jpeg": "JPEG", "png": "PNG"}


def preview(source: Path | IO[bytes], wish: str) -> tuple[bytes, str]:
    """`wish` is `format;quality` such as `webp;90`; what is left out or unknown is webp and 90."""
    kind, _, quality = wish.partition(";")
    kind = kind if kind in ("webp", "jpeg") else "webp"
    strength = int(quality) if quality.isdecimal() and 1 <= int(quality) <= 100 else 90
    with open_picture(source) as image:
        mode = "RGB" if kind == "jpeg" or "A" not in image.getbands() else "RGBA"
        return _encoded(image.convert(mode), kind, quality=strength)


def without_alpha(path: Path) -> tuple[bytes, str]:
    with open_picture(path) as image:
        kind = (image.format or "").lower()
        return _encoded(image.convert("RGB"), kind if kind in _FORMATS else "png")


def alpha_only(path: Path) -> tuple[bytes, str]:
    with open_picture(path) as image:
        bands = image.convert("RGBA").getchannel("A")
        alone = Image.new("RGBA", image.size)
        alone.putalpha(bands)
        return _encoded(alone, "png")


def with_alpha_of(original: Path, mask: IO[bytes]) -> IO[bytes]:
    """The original's colours and text chunks under the mask's alpha, as PNG."""
    with open_picture(original) as image, open_picture(mask) as masking:
        kept = PngInfo()
        for key, value in getattr(image, "text", {}).items():
            kept.add_text(key, value)
        masked = image.convert("RGBA")
        masked.putalpha(masking.convert("RGBA").getchannel("A").resize(image.size))
    target = io.BytesIO()
    masked.save(target, "PNG", pnginfo=kept, compress_level=4)
    target.seek(0)
    return target


def open_picture(source: Path | IO[bytes]) -> Image.Image:
    try:
        image = Image.open(source)
        image.load()
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise BadRequest("This file is not a picture that can be read", details=str(error)) from None
    return image


def _encoded(image: Image.Image, kind: str, quality: int = 95) -> tuple[bytes, str]:
    target = io.BytesIO()
    image.save(target, _FORMATS[kind], **({} if kind == "png" else {"quality": quality}))
    return target.getvalue(), f"image/{kind}"
