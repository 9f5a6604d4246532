"""Print how often the embedded model draws the glyph that was asked for; with --sheet, paint a contact sheet.

200 names are drawn. A hit is a picture whose latent lies nearest to the glyph of that name, or to its mirror
image, among all the glyphs that the model learned from (top 1), or among the five nearest (top 5).
"""

import argparse
import json
from pathlib import Path

import numpy
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from bench.glyph_model import GlyphModel
from bench.train_glyph.folder import read_glyph_latents

FOLDER = Path("models/checkpoints/glyph")
SAMPLES = 200
STEPS, GUIDANCE, SEED = 12, 3.0, 1
ROW = 20  # pictures drawn together
COLUMNS = 8
NAMES = """red heart|cat face|evergreen tree|pizza|rocket|snowman|fire engine|grinning face|umbrella|guitar
banana|hamburger|strawberry|penguin|frog|sunflower|soccer ball|house|sailboat|star|jack-o-lantern|robot
tropical fish|crown"""
PARAPHRASES = """a cute dog|burger|a green frog|pine tree|blue heart|an angry face|a yellow fruit|spaceship
a small bird|a slice of cake|a red apple|a cup of hot coffee|somebody laughing|a musical instrument
a boat with sails|a sea animal|a big old house|a thing to read|a pink pig|flowers for mum|little bug
a ball for sports|scary ghost|a car in the street"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.glyph", description=__doc__)
    parser.add_argument("--model", type=Path, default=FOLDER, help="the checkpoint folder")
    parser.add_argument("--sheet", type=Path, help="write a contact sheet of 48 prompts to this file")
    arguments = parser.parse_args()
    model = GlyphModel(arguments.model)
    ranks = retrieval_ranks(model, arguments.model)
    top1, top5 = ((ranks < limit).float().mean().item() for limit in (1, 5))
    print(
        f"glyph: top 1 {top1:.1%}, top 5 {top5:.1%} of {SAMPLES} names; {STEPS} steps, guidance {GUIDANCE:g}"
    )
    if arguments.sheet:
        contact_sheet(model).save(arguments.sheet, optimize=True)


def retrieval_ranks(model: GlyphModel, folder: Path) -> Tensor:
    """For each sampled name, how many glyphs lie nearer to its picture than the asked one, [SAMPLES]."""
    names = [glyph["name"] for glyph in json.loads((folder / "glyphs.json").read_text(encoding="utf-8"))]
    known = with_mirror_images(model, read_glyph_latents(folder))  # [2, N, C, h, w]
    asked = torch.randperm(len(names), generator=torch.Generator().manual_seed(SEED))[:SAMPLES]
    drawn = torch.cat(
        [
            draw(model, [names[k] for k in part.tolist()], SEED + row)
            for row, part in enumerate(asked.split(ROW))
        ]
    )
    distances = torch.cdist(drawn.flatten(1)[None], known.flatten(2)).amin(0)  # [SAMPLES, N]
    return (distances < distances.gather(1, asked[:, None])).sum(1)


def with_mirror_images(model: GlyphModel, latents: Tensor) -> Tensor:
    mirrored = [model.encode(model.decode(part).flip(-1)) for part in latents.split(ROW)]
    return torch.stack([latents, torch.cat(mirrored)])


def contact_sheet(model: GlyphModel) -> Image.Image:
    """Names above, paraphrases that are no caption below, each over its words."""
    texts = "\n".join((NAMES, PARAPHRASES)).replace("\n", "|").split("|")
    rows = [texts[start : start + COLUMNS] for start in range(0, len(texts), COLUMNS)]
    return Image.fromarray(numpy.concatenate([_strip(model, row, SEED + k) for k, row in enumerate(rows)]))


def draw(model: GlyphModel, texts: list[str], seed: int) -> Tensor:
    return model.draw(texts, seed, STEPS, GUIDANCE)


def _strip(model: GlyphModel, texts: list[str], seed: int) -> numpy.ndarray:
    pictures = ((model.decode(draw(model, texts, seed)) + 1) * 127.5).byte().permute(0, 2, 3, 1).numpy()
    return numpy.concatenate([_cell(picture, text) for picture, text in zip(pictures, texts)], axis=1)


def _cell(picture: numpy.ndarray, text: str) -> numpy.ndarray:
    cell = Image.new("RGB", (144, 152), "white")
    cell.paste(Image.fromarray(picture).resize((128, 128), Image.Resampling.LANCZOS), (8, 4))
    ImageDraw.Draw(cell).text((72, 142), text, fill="black", anchor="mm")
    return numpy.asarray(cell)


if __name__ == "__main__":
    main()
