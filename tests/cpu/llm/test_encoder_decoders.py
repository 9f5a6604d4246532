"""Text models with an encoder and a decoder answer as their own generate does, in padded batches too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq

from runtime.llm import compat_intake, encoder_decoder
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    EmbedRequest,
    Grammar,
    Message,
    SamplingParams,
    TokenizeRequest,
    Tool,
)
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.errors import Unsupported
from tests.cpu.llm.conftest import byte_tokenizer

BART: dict[str, Any] = {
    "vocab_size": 258,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_position_embeddings": 128,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
    "decoder_start_token_id": 0,
    "init_std": 0.3,
}
T5: dict[str, Any] = {
    "vocab_size": 258,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "initializer_factor": 3.0,
}
FAMILIES = {"bart": BART, "t5": T5, "marian": BART | {"decoder_vocab_size": 258}}


def save(family: str, folder: Path) -> Path:
    with building:
        torch.manual_seed(0)
        AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(family, **FAMILIES[family])).save_pretrained(
            folder
        )
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bart", tmp_path_factory.mktemp("bart") / "bart")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_answers_as_its_own_generate_does(
    family: str, tmp_path: Path, start: Callable[..., Engine]
) -> None:
    folder = save(family, tmp_path / family)
    engine = start(models=lambda: {family: folder})
    with building:
        network = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    choose = random.Random(3)
    prompts = [tuple(choose.randint(2, 257) for _ in range(length)) for length in (3, 31, 18, 7)]
    params = SamplingParams(max_tokens=10, temperature=0)
    handles = [
        engine.submit(CompleteRequest(str(number), family, prompt, params))
        for number, prompt in enumerate(prompts)
    ]
    for prompt, handle in zip(prompts, handles):
        out = network.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=10)
        assert list(handle.wait(30).token_ids) == out[0, 1:].tolist()


def test_a_chat_a_grammar_and_tokens(bart: Path, start: Callable[..., Engine]) -> None:
    engine = start(models=lambda: {"bart": bart})
    params = SamplingParams(max_tokens=20, temperature=0, grammar=Grammar("regex", "(yes|no), [0-9]{3}"))
    answer = engine.submit(ChatRequest("a", "bart", (Message("user", "Is it?"),), params)).wait(30)
    assert answer.text[:-3] in ("yes, ", "no, ")
    assert answer.text[-3:].isdigit()
    tokens = engine.submit(TokenizeRequest("t", "bart", "Hi")).wait(30)
    assert (tokens.pieces, tokens.context_length) == ((b"H", b"i"), 128)


def test_what_the_lane_lacks_is_refused_by_name(bart: Path, start: Callable[..., Engine]) -> None:
    engine = start(models=lambda: {"bart": bart})
    refused = [
        (EmbedRequest("e", "bart", "Hi"), "no hidden states"),
        (ChatRequest("c", "bart", (Message("user", "Hi"),), tools=(Tool("f"),)), "tools is not served"),
        (CompleteRequest("p", "bart", ""), "the prompt is empty"),
        (CompleteRequest("l", "bart", (5,) * 200), "has 200 tokens; the context of bart is 128"),
    ]
    for request, words in refused:
        with pytest.raises(Unsupported, match=words):
            engine.submit(request).wait(30)


def test_a_field_that_is_not_served_is_refused(bart: Path, start: Callable[..., Engine]) -> None:
    """One that is added later, too, until somebody decides otherwise."""
    assert {each.name for each in fields(SamplingParams)} >= compat_intake.SERVED_PARAMS
    engine = start(models=lambda: {"bart": bart})
    request = CompleteRequest("p", "bart", "Hi", SamplingParams(prompt_logprobs=1))
    with pytest.raises(Unsupported, match="prompt_logprobs is not served for encoder-decoder"):
        engine.submit(request).wait(30)


def test_speech_is_refused_with_a_sentence(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 258, "num_mel_bins": 8}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "pad_token_id": 1}
    config = AutoConfig.for_model("whisper", **sizes, **heads, encoder_ffn_dim=16, decoder_ffn_dim=16)
    with building:
        AutoModelForSpeechSeq2Seq.from_config(config).save_pretrained(tmp_path / "whisper")
    assert encoder_decoder.is_one(tmp_path / "whisper")
    with pytest.raises(Unsupported, match=r"of type whisper; supported are Florence-2"):
        encoder_decoder.load(tmp_path / "whisper", torch.device("cpu"), None)
