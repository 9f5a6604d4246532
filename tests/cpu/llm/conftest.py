"""A tiny random llama with a byte tokenizer, saved as transformers saves models, and its greedy answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

from runtime.llm.engine import Engine
from runtime.platform.building import building

CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<s>": 0, "</s>": 1} | {letter: number + 2 for number, letter in enumerate(alphabet)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_random(config: Any, folder: Path) -> Path:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tiny_llama(context: int = 512) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=258,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random(tiny_llama(), tmp_path_factory.mktemp("tiny") / "tiny")


@pytest.fixture(scope="session")
def greedy(tiny: Path) -> Callable[[Sequence[int], int], list[int]]:
    """What transformers' own `generate` answers."""
    with building:
        network = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()

    def answer(prompt: Sequence[int], count: int) -> list[int]:
        ids = torch.tensor([list(prompt)])
        out = network.generate(ids, do_sample=False, max_new_tokens=count, pad_token_id=1)
        return out[0, len(prompt) :].tolist()

    return answer


@pytest.fixture
def start(tiny: Path) -> Iterator[Callable[..., Engine]]:
    """Starts engines that serve the tiny model, and closes them."""
    engines = []

    def make(**settings: Any) -> Engine:
        defaults = {"models": lambda: {"tiny": tiny}, "num_pages": 256, "threads": 1, "dtype": torch.float32}
        settings = defaults | settings
        engines.append(Engine(**settings))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()
