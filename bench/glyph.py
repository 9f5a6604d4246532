"""Print how often the embedded model draws the glyph that was asked for; with --sheet, paint a contact sheet.

200 names are drawn. A hit is a picture whose latent lies nearest to the glyph of that name, or to its mirror
image, among all the glyphs that the model learned from (top 1), or among the five nearest (top 5).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from bench.train_glyph.folder import read_glyph_latents, read_latent_scale
from runtime.diffusion.api import (
    Conditioning,
    DecodeRequest,
    EncodeImageRequest,
    EncodeTextRequest,
    SampleRequest,
)
from runtime.diffusion.engine import Engine
from runtime.platform.installed import packaged_language_models

GLYPH = Path(__file__).parents[1] / "models" / "checkpoints" / "glyph"
SAMPLES = 200
STEPS, GUIDANCE, SEED = 12, 3.0, 1
COLUMNS = 8
CELL, PICTURE = (144, 152), 128  # pixels
NAMES = """red heart|cat face|evergreen tree|pizza|rocket|snowman|fire engine|grinning face|umbrella|guitar
banana|hamburger|strawberry|penguin|frog|sunflower|soccer ball|house|sailboat|star|jack-o-lantern|robot
tropical fish|crown"""
PARAPHRASES = """a cute dog|a beef burger|a happy green frog|pine tree|dark blue heart|very angry face
a yellow fruit|spaceship
a small bird|a slice of cake|shiny red apple|a cup of hot coffee|somebody laughing|a musical instrument
a boat with sails|a sea animal|a big old house|a thing to read|a pink pig|flowers for mum|little bug
a ball for sports|scary ghost|a car in the street"""


class Painter:
    """Draws with one checkpoint folder through the diffusion runtime, which merges what is asked together."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._checkpoint = engine.inspect_checkpoint(folder)

    def draw(self, texts: Sequence[str], first_seed: int = SEED) -> Tensor:
        """Latents [N, C, h, w]; each text has a seed of its own, counted from the first."""
        assert self._checkpoint.model is not None
        nothing = self._read("")
        handles = [
            self._engine.submit(
                SampleRequest(
                    id=f"draw-{place}",
                    model=self._checkpoint.model,
                    latent=torch.zeros(1, 8, 16, 16),
                    positive=self._read(text),
                    negative=nothing,
                    seed=first_seed + place,
                    steps=STEPS,
                    cfg=GUIDANCE,
                    previews=False,
                )
            )
            for place, text in enumerate(texts)
        ]
        return torch.cat([handle.wait().latent for handle in handles])

    def decode(self, latents: Tensor) -> Tensor:
        """Pictures [N, H, W, 3] in 0..1."""
        assert self._checkpoint.vae is not None
        pictures: Tensor = self._engine.submit(DecodeRequest("decode", self._checkpoint.vae, latents)).wait()
        return pictures

    def encode(self, pictures: Tensor) -> Tensor:
        assert self._checkpoint.vae is not None
        latents: Tensor = self._engine.submit(
            EncodeImageRequest("encode", self._checkpoint.vae, pictures)
        ).wait()
        return latents

    def _read(self, text: str) -> Conditioning:
        assert self._checkpoint.clip is not None
        conditioning: Conditioning = self._engine.submit(
            EncodeTextRequest(f"read-{text}", self._checkpoint.clip, (text,))
        ).wait()
        return conditioning


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.glyph", description=__doc__)
    parser.add_argument("--model", type=Path, default=GLYPH, help="the checkpoint folder")
    parser.add_argument("--sheet", type=Path, help="write a contact sheet of 48 prompts to this file")
    arguments = parser.parse_args()
    engine = Engine(packaged_language_models)
    painter = Painter(engine, arguments.model)
    ranks = retrieval_ranks(painter, arguments.model)
    top1, top5 = ((ranks < limit).float().mean().item() for limit in (1, 5))
    print(
        f"glyph: top 1 {top1:.1%}, top 5 {top5:.1%} of {SAMPLES} names; {STEPS} steps, guidance {GUIDANCE:g}"
    )
    if arguments.sheet:
        contact_sheet(painter).save(arguments.sheet, optimize=True)
    engine.close()


def retrieval_ranks(painter: Painter, folder: Path) -> Tensor:
    """For each sampled name, how many glyphs lie nearer to its picture than the asked one, [SAMPLES]."""
    names = [glyph["name"] for glyph in json.loads((folder / "glyphs.json").read_text(encoding="utf-8"))]
    asked = torch.randperm(len(names), generator=torch.Generator().manual_seed(SEED))[:SAMPLES]
    scale = read_latent_scale(folder)
    known = read_glyph_latents(folder)
    mirrored = painter.encode(painter.decode(known * scale.std + scale.mean).flip(2))
    drawn = painter.draw([names[place] for place in asked.tolist()])
    known, mirrored, drawn = (
        latents.flatten(1)
        for latents in (known, (mirrored - scale.mean) / scale.std, (drawn - scale.mean) / scale.std)
    )
    distances = torch.minimum(torch.cdist(drawn, known), torch.cdist(drawn, mirrored))  # [SAMPLES, N]
    return (distances < distances.gather(1, asked[:, None])).sum(1)


def contact_sheet(painter: Painter) -> Image.Image:
    """Names above, paraphrases that are no caption below, each over its words."""
    texts = f"{NAMES}|{PARAPHRASES}".replace("\n", "|").split("|")
    pictures = painter.decode(painter.draw(texts)).mul(255).round().byte().numpy()
    width, height = CELL
    sheet = Image.new("RGB", (COLUMNS * width, len(texts) // COLUMNS * height), "white")
    pen = ImageDraw.Draw(sheet)
    for place, (text, picture) in enumerate(zip(texts, pictures)):
        left, top = place % COLUMNS * width, place // COLUMNS * height
        large = Image.fromarray(picture).resize((PICTURE, PICTURE), Image.Resampling.LANCZOS)
        sheet.paste(large, (left + (width - PICTURE) // 2, top + 4))
        pen.text((left + width // 2, top + height - 10), text, fill="black", anchor="mm")
    return sheet


if __name__ == "__main__":
    main()
