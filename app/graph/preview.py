"""Pictures for previews: from a runtime's rgb array to an encoded image of sensible size."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image

MAX_SIDE = 512
MIN_SIDE = 128
JPEG_QUALITY = 90


def picture_of(rgb: Any) -> Image.Image:
    """rgb is uint8 [h, w, 3], a tensor or an array."""
    return Image.fromarray(rgb.numpy() if hasattr(rgb, "numpy") else rgb)


def encoded(picture: Image.Image) -> bytes:
    """JPEG, shrunk to at most MAX_SIDE; the few cells of a latent grow by a whole factor."""
    longest = max(picture.size)
    if longest < MIN_SIDE:
        factor = -(-MIN_SIDE // longest)
        picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.BICUBIC)
    elif longest > MAX_SIDE:
        picture = picture.copy()
        picture.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.BILINEAR)
    out = io.BytesIO()
    picture.convert("RGB").save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()
