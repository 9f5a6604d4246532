"""Pictures of glyphs: what a colour bitmap font draws, on white."""

from pathlib import Path

import numpy
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

BITMAP_SIZE = 109  # the one size at which Noto Color Emoji holds bitmaps, 136 x 128 pixels each
WIDTH, HEIGHT = 136, 128


class GlyphFont:
    """Owns an open font file."""

    def __init__(self, font_file: Path) -> None:
        self._font = ImageFont.truetype(str(font_file), BITMAP_SIZE)

    def has(self, emoji: str) -> bool:
        """Whether it is drawn, and as one glyph: a font may be older than the list of names."""
        left, _, right, _ = self._font.getbbox(emoji)
        return right - left <= WIDTH + BITMAP_SIZE // 8 and self._pixels(emoji).std() > 5

    def draw(self, emoji: str) -> Tensor:
        """A picture [3, 128, 128] in [-1, 1]."""
        return torch.from_numpy(self._pixels(emoji)).permute(2, 0, 1).float() / 127.5 - 1

    def _pixels(self, emoji: str) -> numpy.ndarray:
        glyph = Image.new("RGBA", (WIDTH, HEIGHT))
        pen = ImageDraw.Draw(glyph)
        _, top, _, bottom = pen.textbbox((0, 0), emoji, font=self._font, embedded_color=True)
        pen.text((0, (HEIGHT - (bottom - top)) // 2 - top), emoji, font=self._font, embedded_color=True)
        paper = Image.new("RGBA", glyph.size, "white")
        paper.alpha_composite(glyph)
        margin = (WIDTH - HEIGHT) // 2
        return numpy.array(paper.convert("RGB").crop((margin, 0, WIDTH - margin, HEIGHT)))
