"""What there is to look at: glyphs as the font draws them, as the autoencoder softens them, and as the
embedded picture model draws them from their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.glyph import GLYPH, Painter
from bench.train_glyph.captions import with_article
from bench.train_glyph.folder import read_glyph_latents, read_latent_scale
from bench.train_glyph.glyphs import Glyph
from bench.train_glyph.render import GlyphFont
from runtime.diffusion.engine import Engine
from runtime.platform.installed import packaged_language_models

PICTURE = 64  # pixels a side, what the model sees
DRAWN_SIZE = 128  # pixels a side, what the font draws; augmentation works at this size
REQUESTS = ("{name}", "{a}", "a picture of {a}", "{name} icon")
TRAINING_SEED = 1_000_000  # measuring counts its seeds from 1
CHUNK = 64  # pictures drawn together


@dataclass(frozen=True, slots=True)
class Pictures:
    versions: Tensor  # [V, N, 3, DRAWN_SIZE, DRAWN_SIZE] of uint8; N counts the glyphs
    shares: Tensor  # [V], how often each version is looked at


def read_glyphs() -> list[Glyph]:
    """Those that the embedded picture model learned."""
    entries = json.loads((GLYPH / "glyphs.json").read_text(encoding="utf-8"))
    return [Glyph(entry["name"], entry["emoji"], tuple(entry["keywords"])) for entry in entries]


def make_pictures(glyphs: Sequence[Glyph], font_file: Path, work: Path) -> Pictures:
    """Drawing takes minutes, so each request's pictures are kept in `work`."""
    font = GlyphFont(font_file)
    rendered = torch.stack([font.draw(glyph.emoji) for glyph in glyphs]) / 2 + 0.5
    engine = Engine(packaged_language_models)
    painter = Painter(engine, GLYPH)
    softened = decode_known(painter)
    generated = [_generated(painter, glyphs, number, work) for number in range(len(REQUESTS))]
    engine.close()
    versions = torch.stack([_stored(rendered), _stored(softened), *generated])
    return Pictures(versions, torch.tensor([4.0, 2.0] + [1.0] * len(generated)))


def decode_known(painter: Painter) -> Tensor:
    """The glyphs after a passage through the autoencoder, [N, 3, PICTURE, PICTURE] in 0..1."""
    scale = read_latent_scale(GLYPH)
    decoded = painter.decode(read_glyph_latents(GLYPH) * scale.std + scale.mean)
    return decoded.permute(0, 3, 1, 2).float()


def draw_in_chunks(painter: Painter, texts: Sequence[str], first_seed: int) -> Iterator[Tensor]:
    """Pictures [n, 3, PICTURE, PICTURE] in 0..1."""
    for start in range(0, len(texts), CHUNK):
        latents = painter.draw(texts[start : start + CHUNK], first_seed + start)
        yield painter.decode(latents).permute(0, 3, 1, 2).float()


def _generated(painter: Painter, glyphs: Sequence[Glyph], number: int, work: Path) -> Tensor:
    kept = work / f"generated-{number}.pt"
    if kept.is_file():
        stored: Tensor = torch.load(kept)
        return stored
    texts = [REQUESTS[number].format(name=glyph.name, a=with_article(glyph.name)) for glyph in glyphs]
    parts = draw_in_chunks(painter, texts, TRAINING_SEED + number * len(glyphs))
    stored = _stored(torch.cat(list(parts)))
    torch.save(stored, kept)
    print(f"pictures: drew {REQUESTS[number]!r} for {len(glyphs)} glyphs", flush=True)
    return stored


def _stored(pictures: Tensor) -> Tensor:
    # [N, 3, H, W] in 0..1 -> uint8 of one size
    pictures = F.interpolate(pictures, size=DRAWN_SIZE, mode="bilinear", align_corners=False)
    return pictures.clamp(0, 1).mul(255).round().byte()
