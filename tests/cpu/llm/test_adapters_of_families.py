"""Adapters of models with other linear layers than Llama's: GPT-2's and recurrent ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoConfig

from runtime.llm.api import CompleteRequest, SamplingParams
from runtime.llm.engine import Engine
from tests.cpu.llm.conftest import save_random
from tests.cpu.llm.peft_folders import base, save_adapter
from tests.cpu.llm.test_adapters import is_from
from tests.cpu.llm.test_hybrids import HYBRIDS

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

GPT2 = {
    "vocab_size": 258,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 512,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
FAMILIES: dict[str, tuple[dict[str, Any], Any]] = {
    "gpt2": (GPT2, ["c_attn", "c_fc", "c_proj"]),
    "lfm2": (HYBRIDS["lfm2"], ["q_proj", "in_proj", "out_proj", "w1"]),
    "qwen3_next": (HYBRIDS["qwen3_next"], ["q_proj", "in_proj_qkvz", "out_proj"]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_mixed_batch_computes_what_peft_computes(name: str, tmp_path: Path) -> None:
    sizes, layers = FAMILIES[name]
    folder = save_random(AutoConfig.for_model(name, **sizes), tmp_path / name)
    settings = {"r": 4, "lora_alpha": 8, "target_modules": layers, "fan_in_fan_out": name == "gpt2"}
    adapters = {key: save_adapter(folder, tmp_path / key, seed, **settings) for seed, key in enumerate("ab")}
    networks = {key: peft.PeftModel.from_pretrained(base(folder), path) for key, path in adapters.items()}
    prompts = {key: tuple(range(20 + at, 60 + 3 * at)) for at, key in enumerate([None, "a", "b"])}
    params = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True, logprobs=0)
    engine = Engine(
        lambda: {name: folder},
        adapters=lambda: adapters,
        threads=1,
        num_pages=128,
        max_batch_tokens=24,
        dtype=torch.float32,
    )
    try:
        handles = {
            key: engine.submit(CompleteRequest(str(key), name, prompt, params, adapter=key))
            for key, prompt in prompts.items()
        }
        for key, handle in handles.items():
            network = base(folder) if key is None else networks[key].eval()
            assert is_from(network, prompts[key], handle.wait(60)), key
    finally:
        engine.close()
