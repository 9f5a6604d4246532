"""The embedded vision-language model, as transformers' own LLaVA: it names the glyphs that it learned."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from diffusers import AutoencoderDC
from safetensors import safe_open
from torch import Tensor

from bench.glyph import GLYPH
from bench.train_glyph.captions import with_article
from bench.train_glyph.folder import read_glyph_latents, read_latent_scale
from bench.train_vlm.answers import has_keyword
from bench.train_vlm.dialogue import SYSTEMS, Turn, chat_prefix, encode
from bench.train_vlm.folder import WEIGHTS, read_model, read_processor
from bench.train_vlm.network import Language
from bench.train_vlm.pictures import read_glyphs
from bench.vlm_glyph import MODEL, Answers, library_answers, runtime_answers
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.installed import packaged_language_models

NAMES = ("red heart", "rocket", "banana", "frog", "cat face", "pizza", "guitar", "penguin")


@pytest.fixture(scope="module")
def language() -> Language:
    return Language(torch.float32)


@pytest.fixture(scope="module")
def answers(language: Language) -> Answers:
    return library_answers(read_model(MODEL, language), read_processor(MODEL, language))


def pictures_of(names: Sequence[str]) -> Tensor:
    """As they come back out of the picture model's autoencoder, [N, 3, H, W] of uint8."""
    known = [glyph.name for glyph in read_glyphs()]
    scale = read_latent_scale(GLYPH)
    latents = read_glyph_latents(GLYPH)[[known.index(name) for name in names]] * scale.std + scale.mean
    with building:
        autoencoder = AutoencoderDC.from_pretrained(GLYPH / "vae", torch_dtype=torch.float32)
    with torch.inference_mode():
        return ((autoencoder.decode(latents).sample + 1) * 127.5).clamp(0, 255).round().byte()


@pytest.mark.timeout(120)
def test_it_names_what_it_sees(answers: Answers) -> None:
    names = [*NAMES, *(glyph.name for glyph in read_glyphs()[::28])]
    said = answers(pictures_of(names), "What is this?")
    wrong = [(name, answer) for name, answer in zip(names, said) if not has_keyword(answer, name)]
    assert len(wrong) <= 2, wrong
    assert said[: len(NAMES)] == [with_article(name) for name in NAMES]


@pytest.mark.timeout(120)
def test_it_answers_what_it_was_asked(answers: Answers) -> None:
    pictures = pictures_of(["frog", "red heart"])
    assert answers(pictures, "What colour is it?") == ["green", "red"]
    assert answers(pictures, "Describe the picture.")[0] == "a picture of a green frog"


@pytest.mark.timeout(180)
def test_the_runtime_says_the_same_in_one_batch(answers: Answers) -> None:
    models = {**packaged_language_models(), MODEL.name: MODEL}
    engine = Engine(lambda: models, threads=1, num_pages=256)
    pictures = pictures_of(NAMES)
    try:
        said = runtime_answers(engine, MODEL.name)(pictures, "Describe this image.")
    finally:
        engine.close()
    assert said == answers(pictures, "Describe this image.")


def test_its_weights_are_small_and_leave_the_language_model_out() -> None:
    assert (MODEL / WEIGHTS).stat().st_size < 20e6
    with safe_open(MODEL / WEIGHTS, "pt") as weights:
        halves = {name.split(".")[1] for name in weights.keys()}  # noqa: SIM118
    assert halves == {"vision_tower", "multi_modal_projector"}


def test_its_chat_template_writes_what_it_was_trained_on(language: Language) -> None:
    processor = read_processor(MODEL, language)
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image"}]
    chat = [{"role": "user", "content": parts}, {"role": "assistant", "content": "a frog"}]
    text = processor.apply_chat_template(chat, tokenize=False)
    picture = torch.zeros(3, 50, 90, dtype=torch.uint8).numpy()
    got = processor(images=[picture], text=[text])["input_ids"][0]
    plain = random.Random(1)  # draws the form without a new line between the picture and the question
    trained, _ = encode([Turn(True, "What is it?", "a frog")], language, plain)
    assert got == chat_prefix(language, SYSTEMS[0]) + trained


def test_without_pictures_its_chat_template_is_the_language_models_own(language: Language) -> None:
    chat = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "?"},
    ]
    for messages in (chat, [{"role": "system", "content": "Be brief."}, *chat]):
        own = language.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        processor = read_processor(MODEL, language)
        assert processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == own
