"""Print how often the embedded vision-language model names a picture rightly.

It is asked once, greedily, about 300 of the glyphs that it learned from and about 300 pictures that the
embedded picture model draws of as many names, from seeds of which it saw none. An answer counts when a word
of it is a keyword of the name (`has_keyword` in bench/train_vlm/answers.py); how often it holds all the name
stands beside that. Without a font the glyphs are those that came back out of the picture model's autoencoder.
The answers are the language runtime's, or with --library those of transformers.
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
from runtime.diffusion.engine import Engine as DiffusionEngine
from runtime.llm.api import ChatRequest, Image, Message, SamplingParams
from runtime.llm.engine import Engine as LanguageEngine
from runtime.platform.installed import packaged_language_models

MODEL = Path(__file__).parents[1] / "models" / "llm" / "glyph-vlm"
QUESTION = "What is this?"
SAMPLES = 300
CHUNK = 30  # pictures asked about together
MAX_TOKENS = 16

# Pictures [N, 3, H, W] of uint8 and one question about each, to N answers.
Answers = Callable[[Tensor, str], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vlm_glyph",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=MODEL, help="the folder of the vision-language model")
    parser.add_argument("--font", type=Path, help="NotoColorEmoji.ttf, to ask about its own pictures")
    parser.add_argument("--library", action="store_true", help="ask transformers' own LLaVA")
    arguments = parser.parse_args()
    names = [glyph.name for glyph in read_glyphs()]
    chosen = torch.randperm(len(names), generator=torch.Generator().manual_seed(SEED))[:SAMPLES].tolist()
    asked = [names[place] for place in chosen]
    painting = DiffusionEngine(packaged_language_models)
    painter = Painter(painting, GLYPH)
    known = render(arguments.font) if arguments.font else decode_known(painter)
    drawn = torch.cat(list(draw_in_chunks(painter, asked, SEED)))
    painting.close()
    sources = (("learned glyphs", known[chosen]), ("generated pictures", drawn))
    if arguments.library:
        language = Language(torch.float32)
        model, processor = read_model(arguments.model, language), read_processor(arguments.model, language)
        ask(sources, asked, library_answers(model, processor))
    else:
        models = {**packaged_language_models(), arguments.model.name: arguments.model}
        talking = LanguageEngine(lambda: models)
        ask(sources, asked, runtime_answers(talking, arguments.model.name))
        talking.close()


def render(font_file: Path) -> Tensor:
    """The font's glyphs as the model learned them, [N, 3, PICTURE, PICTURE] in 0..1."""
    font = GlyphFont(font_file)
    pictures = torch.stack([font.draw(glyph.emoji) for glyph in read_glyphs()])
    return F.interpolate(pictures / 2 + 0.5, size=PICTURE, mode="area")


def ask(sources: Sequence[tuple[str, Tensor]], names: Sequence[str], answers: Answers) -> None:
    for source, pictures in sources:
        said = answers(pictures.mul(255).round().byte(), QUESTION)
        pairs = list(zip(names, said, strict=True))
        keyword = sum(has_keyword(answer, name) for name, answer in pairs) / len(pairs)
        whole = sum(name in answer for name, answer in pairs) / len(pairs)
        print(
            f"vlm_glyph: a keyword of the name for {keyword:.1%} of {len(pairs)} {source},"
            f" all the name for {whole:.1%}"
        )
        wrong = [f"{answer!r} for {name!r}" for name, answer in pairs if not has_keyword(answer, name)]
        print("  wrong:", "; ".join(wrong[:8]) or "none", flush=True)


def runtime_answers(engine: LanguageEngine, name: str) -> Answers:
    """By the language runtime, all at once."""
    params = SamplingParams(max_tokens=MAX_TOKENS, temperature=0)

    def answers(pictures: Tensor, question: str) -> list[str]:
        images = [Image(picture.contiguous()) for picture in pictures.permute(0, 2, 3, 1)]
        requests = [
            ChatRequest(f"ask-{number}", name, (Message("user", (image, question)),), params)
            for number, image in enumerate(images)
        ]
        return [handle.wait().text for handle in [engine.submit(request) for request in requests]]

    return answers


def library_answers(model: LlavaForConditionalGeneration, processor: LlavaProcessor) -> Answers:
    def answers(pictures: Tensor, question: str) -> list[str]:
        parts = [{"type": "image"}, {"type": "text", "text": question}]
        prompt = processor.apply_chat_template(
            [{"role": "user", "content": parts}], tokenize=False, add_generation_prompt=True
        )
        said: list[str] = []
        for chunk in pictures.split(CHUNK):
            inputs = processor(images=list(chunk.numpy()), text=[prompt] * len(chunk), return_tensors="pt")
            tokens = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_TOKENS)
            tokens = tokens[:, inputs["input_ids"].shape[1] :]
            said += processor.batch_decode(tokens, skip_special_tokens=True)
        return said

    return answers


if __name__ == "__main__":
    main()
