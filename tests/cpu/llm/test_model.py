"""Which models are served, on their own terms, and which are refused and why."""

import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from runtime.llm import model, weight_count
from runtime.llm.api import CompleteRequest, SamplingParams
from runtime.llm.attention import IMPLEMENTATION
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.errors import MissingFile, OutOfMemory, Unsupported
from tests.cpu.llm.conftest import save_random, tiny_llama

SMALL: dict[str, Any] = {
    "vocab_size": 258,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
HEADS = {"head_dim": 16}
WINDOW = {"sliding_window": 8}
GPT2 = {
    "vocab_size": 258,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 256,
    "initializer_range": 0.3,
}
SERVED = {
    "qwen3": SMALL | HEADS,
    "qwen2_moe": SMALL | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "mistral": SMALL | HEADS | WINDOW,
    "gemma2": SMALL
    | HEADS
    | {"sliding_window": 8, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 20.0},
    "gemma3_text": SMALL | HEADS | {"sliding_window": 8, "query_pre_attn_scalar": 16},
    "gpt_oss": SMALL | HEADS | WINDOW | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "llama4_text": SMALL
    | HEADS
    | {
        "intermediate_size_mlp": 96,
        "num_hidden_layers": 4,
        "num_local_experts": 4,
        "attention_chunk_size": 6,
        "floor_scale": 4,
        "attn_scale": 2.0,
    },
    "phi3": SMALL,
    "gpt2": GPT2,
}


@pytest.mark.parametrize("family", SERVED)
def test_a_family_answers_as_its_own_generate_does(
    family: str, tmp_path: Path, start: Callable[..., Engine]
) -> None:
    folder = save_random(AutoConfig.for_model(family, **SERVED[family]), tmp_path / family)
    engine = start(models=lambda: {family: folder}, page_size=4, max_batch_tokens=24)
    with building:
        network = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()
    choose = random.Random(3)
    prompts = [tuple(choose.randint(2, 257) for _ in range(length)) for length in (3, 31, 18, 7)]
    params = SamplingParams(max_tokens=10, temperature=0)
    handles = [
        engine.submit(CompleteRequest(str(number), family, prompt, params))
        for number, prompt in enumerate(prompts)
    ]
    for prompt, handle in zip(prompts, handles):
        out = network.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=10, pad_token_id=1)
        assert list(handle.wait(30).token_ids) == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize(
    ("family", "settings", "words"),
    [
        (
            "bloom",
            {"vocab_size": 258, "hidden_size": 64, "n_layer": 2, "n_head": 4},
            "never calls|cannot run",
        ),
        ("mamba", {"vocab_size": 258, "hidden_size": 64, "num_hidden_layers": 2}, "never calls"),
        ("bert", SMALL | {"is_decoder": False}, "something else on pages|cannot run"),
        ("qwen3", SMALL | HEADS | {"layer_types": ["indexed_attention"] * 2}, "kind indexed_attention"),
    ],
)
def test_other_models_are_refused_with_a_sentence(
    family: str, settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    folder = save_random(AutoConfig.for_model(family, **settings), tmp_path / family)
    with pytest.raises(Unsupported, match=words) as caught:
        model.load(folder, torch.device("cpu"), torch.float32)
    assert "supported are" in str(caught.value)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    device, dtype = torch.device("cpu"), torch.float32
    with pytest.raises(MissingFile, match="nowhere"):
        model.load(tmp_path / "nowhere", device, dtype)
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unsupported, match="empty cannot be loaded"):
        model.load(tmp_path / "empty", device, dtype)
    for name in ("weights.bin", "broken.gguf"):
        (tmp_path / name).write_bytes(b"GGUF not really")
        with pytest.raises(Unsupported, match=name):
            model.load(tmp_path / name, device, dtype)


def test_a_model_larger_than_memory_is_refused_before_it_is_read(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = torch.device("cpu")
    network = AutoModelForCausalLM.from_pretrained(tiny)
    assert weight_count.count(tiny) == sum(each.numel() for each in network.parameters())
    memory = psutil.virtual_memory()._replace(available=4 * network.num_parameters())
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    weight_count.check_fits(tiny, device, torch.bfloat16)
    with pytest.raises(OutOfMemory, match=r"tiny needs .* in float32"):
        model.load(tiny, device, torch.float32)


def test_a_layer_that_keeps_its_own_attention_is_noticed() -> None:
    with building:
        torch.manual_seed(0)
        network = AutoModelForCausalLM.from_config(tiny_llama(), attn_implementation=IMPLEMENTATION).eval()
    layer = network.model.layers[1].self_attn
    layer.config = deepcopy(layer.config)
    layer.config._attn_implementation = "eager"
    with pytest.raises(Unsupported, match="on pages"):
        model.adopt(network, "deaf", torch.device("cpu"))
