"""Print how often the embedded vision-language model names a picture rightly.

It is asked once, greedily, about 300 of the glyphs that it learned from and about 300 pictures that the
embedded picture model draws of as many names, from seeds of which it saw none. An answer counts when a word
of it is a keyword of the name (`has_keyword` in bench/train_vlm/answers.py); how often it holds all the name
stands beside that. Without a font the glyphs are those that came back out of the picture model's autoencoder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlavaForConditionalGeneration, LlavaProcessor

from bench.glyph import GLYPH, SEED, Painter
from bench.train_glyph.render import GlyphFont
from bench.train_vlm.answers import has_keyword
from bench.train_vlm.folder import read_model, read_processor
from bench.train_vlm.network import Language
from bench.train_vlm.pictures import PICTURE, decode_known, draw_in_chunks, read_glyphs
from runtime.diffusion.engine import Engine
from runtime.platform.installed import packaged_language_models

MODEL = Path(__file__).parents[1] / "models" / "llm" / "glyph-vlm"
QUESTION = "What is this?"
SAMPLES = 300
CHUNK = 30  # pictures asked about together
MAX_TOKENS = 16

# Pictures [N, 3, H, W] of uint8 and one question about each, to N answers.
Answers = Callable[[Tensor, str], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.vlm_glyph", description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL, help="the folder of the vision-language model")
    parser.add_argument("--font", type=Path, help="NotoColorEmoji.ttf, to ask about its own pictures")
    arguments = parser.parse_args()
    names = [glyph.name for glyph in read_glyphs()]
    chosen = torch.randperm(len(names), generator=torch.Generator().manual_seed(SEED))[:SAMPLES].tolist()
    asked = [names[place] for place in chosen]
    engine = Engine(packaged_language_models)
    painter = Painter(engine, GLYPH)
    known = render(arguments.font) if arguments.font else decode_known(painter)
    drawn = torch.cat(list(draw_in_chunks(painter, asked, SEED)))
    engine.close()
    language = Language(torch.float32)
    answers = library_answers(
        read_model(arguments.model, language), read_processor(arguments.model, language)
    )
    for kind, pictures in (("learned glyphs", known[chosen]), ("generated pictures", drawn)):
        report(kind, asked, answers(pictures.mul(255).round().byte(), QUESTION))


def report(kind: str, names: Sequence[str], answers: Sequence[str]) -> None:
    pairs = list(zip(names, answers, strict=True))
    keyword = sum(has_keyword(answer, name) for name, answer in pairs) / len(pairs)
    whole = sum(name in answer for name, answer in pairs) / len(pairs)
    print(f"vlm_glyph: {kind}: a keyword for {keyword:.1%}, the whole name for {whole:.1%} of {len(pairs)}")
    wrong = [f"{name!r} -> {answer!r}" for name, answer in pairs if not has_keyword(answer, name)]
    if wrong:
        print("  such as " + "; ".join(wrong[:5]))


def render(font_file: Path) -> Tensor:
    """The font's glyphs as the model learned them, [N, 3, PICTURE, PICTURE] in 0..1."""
    font = GlyphFont(font_file)
    pictures = torch.stack([font.draw(glyph.emoji) for glyph in read_glyphs()])
    return F.interpolate(pictures / 2 + 0.5, size=PICTURE, mode="area")


def library_answers(model: LlavaForConditionalGeneration, processor: LlavaProcessor) -> Answers:
    """By transformers' own forward, without the language runtime."""

    def answers(pictures: Tensor, question: str) -> list[str]:
        parts = [{"type": "image"}, {"type": "text", "text": question}]
        prompt = processor.apply_chat_template(
            [{"role": "user", "content": parts}], tokenize=False, add_generation_prompt=True
        )
        given: list[str] = []
        for chunk in pictures.split(CHUNK):
            inputs = processor(images=list(chunk.numpy()), text=[prompt] * len(chunk), return_tensors="pt")
            said = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_TOKENS)
            tokens = said[:, inputs["input_ids"].shape[1] :]
            given += processor.batch_decode(tokens, skip_special_tokens=True)
        return given

    return answers


if __name__ == "__main__":
    main()
