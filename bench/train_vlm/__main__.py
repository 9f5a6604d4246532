"""Make the embedded vision-language model: draw glyphs, learn their words, learn to answer questions.

It can be stopped at any time and goes on from the checkpoints in --work.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.train_glyph.colours import main_colour
from bench.train_vlm.answers import Subject
from bench.train_vlm.folder import write_model
from bench.train_vlm.imitation import learn_words
from bench.train_vlm.network import Language, Vision, new_config
from bench.train_vlm.pictures import make_pictures, read_glyphs
from bench.train_vlm.tuning import learn_answers


@dataclass(frozen=True, slots=True)
class Arguments:
    font: Path
    work: Path
    output: Path
    word_steps: int
    answer_steps: int
    threads: int


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    arguments.work.mkdir(parents=True, exist_ok=True)

    glyphs = read_glyphs()
    pictures = make_pictures(glyphs, arguments.font, arguments.work)
    rendered = pictures.versions[0].float() / 127.5 - 1
    subjects = [Subject(glyph, main_colour(picture)) for glyph, picture in zip(glyphs, rendered, strict=True)]
    language = Language(torch.bfloat16)
    config = new_config(language)
    vision = Vision(config)
    words, answers = arguments.work / "words.pt", arguments.work / "answers.pt"
    learn_words(vision, language, subjects, pictures, words, arguments.word_steps)
    learn_answers(vision, language, subjects, pictures, answers, arguments.answer_steps)
    write_model(vision, config, arguments.output)


def parse_arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m bench.train_vlm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--font", type=Path, required=True, help="NotoColorEmoji.ttf with bitmaps")
    parser.add_argument("--work", type=Path, default=Path("build/vlm/work"), help="checkpoints")
    parser.add_argument("--output", type=Path, default=Path("build/vlm/model"), help="the finished folder")
    parser.add_argument("--word-steps", type=int, default=3000)
    parser.add_argument("--answer-steps", type=int, default=900)
    parser.add_argument("--threads", type=int, default=1)
    arguments = Arguments(**vars(parser.parse_args()))
    if not arguments.font.is_file():
        sys.exit(f"no font at {arguments.font}; Debian's package fonts-noto-color-emoji has it")
    return arguments


if __name__ == "__main__":
    main()
