"""Make the embedded model: draw the glyphs, learn an autoencoder, read the captions, learn the transformer.

It can be stopped at any time and goes on from the checkpoints in --work. With --start-from it refines a model
that exists: that folder's autoencoder and statistics stay as they are.
"""

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderDC, SD3Transformer2DModel
from torch import Tensor

from bench.train_glyph.autoencoder import encode_both_ways, train_autoencoder
from bench.train_glyph.captions import Caption, captions_of, keyword_counts
from bench.train_glyph.colours import main_colour
from bench.train_glyph.examples import Examples
from bench.train_glyph.folder import (
    LatentScale,
    read_latent_scale,
    read_text_encoder,
    write_glyph_latents,
    write_networks,
    write_statistics,
)
from bench.train_glyph.glyphs import Glyph, read_emojibase, write_glyphs
from bench.train_glyph.render import GlyphFont
from bench.train_glyph.sink import Sink
from bench.train_glyph.text import TextConfig, TextReader, measure, standardise
from bench.train_glyph.transformer import TransformerTraining, new_transformer

PICTURE = 64  # pixels a side
TEXT = TextConfig("smollm2-135m-instruct", hidden_layer=-6, max_tokens=16)


@dataclass(frozen=True, slots=True)
class Arguments:
    font: Path
    emojibase: Path
    work: Path
    output: Path
    start_from: Path | None
    autoencoder_steps: int
    transformer_steps: int
    threads: int


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    arguments.work.mkdir(parents=True, exist_ok=True)

    font = GlyphFont(arguments.font)
    glyphs = [glyph for glyph in read_emojibase(arguments.emojibase) if font.has(glyph.emoji)]
    pictures = torch.stack([font.draw(glyph.emoji) for glyph in glyphs])
    autoencoder = make_autoencoder(arguments, F.interpolate(pictures, size=PICTURE, mode="area"))
    latents = encode_both_ways(autoencoder, F.interpolate(pictures, size=PICTURE, mode="area"))
    scale = read_latent_scale(arguments.start_from) if arguments.start_from else LatentScale.of(latents[0])
    latents = (latents - scale.mean) / scale.std
    captions = make_captions(glyphs, pictures)
    states = TextReader(TEXT).read([caption.text for of_glyph in captions for caption in of_glyph])
    statistics = read_text_encoder(arguments.start_from)[1] if arguments.start_from else measure(states)
    features = standardise(states, statistics)
    sink = Sink.of(features)
    examples = Examples(latents, captions, sink.taken_from(features))
    transformer = sink.taken_out_of(start_transformer(arguments))
    training = TransformerTraining(transformer, examples, arguments.work / "transformer.pt")
    training.run(arguments.transformer_steps)

    arguments.output.mkdir(parents=True, exist_ok=True)
    write_networks(arguments.output, sink.taken_out_of(training.averaged), autoencoder)
    write_statistics(arguments.output, TEXT, statistics, scale)
    write_glyph_latents(arguments.output, latents[0])
    write_glyphs(glyphs, arguments.output / "glyphs.json")


def parse_arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m bench.train_glyph",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--font", type=Path, required=True, help="NotoColorEmoji.ttf with bitmaps")
    parser.add_argument(
        "--emojibase", type=Path, required=True, help="the npm package emojibase-data, unpacked"
    )
    parser.add_argument("--work", type=Path, default=Path("build/glyph/work"), help="checkpoints")
    parser.add_argument("--output", type=Path, default=Path("build/glyph/model"), help="the finished folder")
    parser.add_argument("--start-from", type=Path, help="a finished folder to refine")
    parser.add_argument("--autoencoder-steps", type=int, default=9000)
    parser.add_argument("--transformer-steps", type=int, default=12_000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = Arguments(**vars(parser.parse_args()))
    if not arguments.font.is_file():
        sys.exit(f"no font at {arguments.font}; Debian's package fonts-noto-color-emoji has it")
    if not (arguments.emojibase / "en" / "data.json").is_file():
        sys.exit(f"no en/data.json in {arguments.emojibase}; `npm install emojibase-data` brings it")
    return arguments


def make_autoencoder(arguments: Arguments, pictures: Tensor) -> AutoencoderDC:
    if arguments.start_from:
        return AutoencoderDC.from_pretrained(arguments.start_from / "vae", torch_dtype=torch.float32).eval()
    return train_autoencoder(pictures, arguments.autoencoder_steps, arguments.work / "autoencoder.pt")


def make_captions(glyphs: list[Glyph], pictures: Tensor) -> list[list[Caption]]:
    counts, rng = keyword_counts(glyphs), random.Random(0)
    return [
        captions_of(glyph, counts, main_colour(picture), rng)
        for glyph, picture in zip(glyphs, pictures, strict=True)
    ]


def start_transformer(arguments: Arguments) -> SD3Transformer2DModel:
    if arguments.start_from:
        folder = arguments.start_from / "transformer"
        return SD3Transformer2DModel.from_pretrained(folder, torch_dtype=torch.float32)
    return new_transformer()


if __name__ == "__main__":
    main()
