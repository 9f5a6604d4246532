"""Models whose layers carry states answer as transformers alone does, whoever shares or presses them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from runtime.llm import model as model_module
from runtime.llm.api import CompleteRequest, Completion, EmbedRequest, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.handle import Cancelled
from tests.cpu.llm.conftest import save_random

COMMON: dict[str, Any] = {
    "vocab_size": 258,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
DELTA = {
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}
MAMBA = {
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_d_state": 16,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 16,
}
TURNS = ["linear_attention", "full_attention"] * 2
HYBRIDS: dict[str, dict[str, Any]] = {
    "qwen3_5_text": COMMON | DELTA | {"head_dim": 16},
    "qwen3_next": COMMON | DELTA | EXPERTS | {"head_dim": 16},
    "olmo_hybrid": COMMON | DELTA | {"layer_types": TURNS},
    "lfm2": COMMON | {"layer_types": ["conv", "full_attention"] * 2, "block_auto_adjust_ff_dim": False},
    "falcon_h1": COMMON | MAMBA | {"head_dim": 16, "mamba_d_ssm": 128},
    "bamba": COMMON | MAMBA | {"attn_layer_indices": [1, 3]},
    "granitemoehybrid": COMMON
    | MAMBA
    | {
        "layer_types": TURNS,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 32,
    },
    "nemotron_h": COMMON
    | {
        "layers_block_type": ["linear_attention", "full_attention", "linear_attention", "mlp"],
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "n_groups": 1,
        "chunk_size": 16,
        "head_dim": 16,
    },
}


class Hybrid:
    """A saved model, and what transformers makes of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        save_random(AutoConfig.for_model(name, **HYBRIDS[name]), folder)
        with building:
            self.network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        ids = torch.tensor([list(prompt)])
        out = self.network.generate(ids, do_sample=False, max_new_tokens=count, pad_token_id=1)
        return out[0, len(prompt) :].tolist()

    @torch.inference_mode()
    def hidden(self, prompt: Sequence[int]) -> torch.Tensor:
        ids = torch.tensor([list(prompt)])
        return self.network(ids, use_cache=False, output_hidden_states=True).hidden_states[-1][0]

    def ask(self, id: str, prompt: Sequence[int], count: int) -> CompleteRequest:
        return CompleteRequest(id, self.name, tuple(prompt), SamplingParams(max_tokens=count, temperature=0))


@pytest.fixture(scope="module")
def hybrids(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Hybrid]:
    made: dict[str, Hybrid] = {}

    def get(name: str) -> Hybrid:
        if name not in made:
            made[name] = Hybrid(name, tmp_path_factory.mktemp("hybrids") / name)
        return made[name]

    return get


def prompts(count: int, longest: int, seed: int) -> list[tuple[int, ...]]:
    choose = random.Random(seed)
    return [tuple(choose.randint(2, 257) for _ in range(choose.randint(1, longest))) for _ in range(count)]


def run(engine: Engine, asked: Sequence[CompleteRequest], seed: int = 1) -> list[Completion]:
    choose = random.Random(seed)
    handles = []
    for each in asked:
        handles.append(engine.submit(each))
        if choose.random() < 0.3:
            time.sleep(0.004)
    return [handle.wait(50) for handle in handles]


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_hybrid_answers_as_its_own_generate_does(
    name: str, hybrids: Callable[[str], Hybrid], start: Callable[..., Engine]
) -> None:
    hybrid = hybrids(name)
    engine = start(models=lambda: {name: hybrid.folder}, page_size=4, max_batch_tokens=24)
    asked = [hybrid.ask(str(at), prompt, 6) for at, prompt in enumerate(prompts(5, 32, seed=3))]
    for each, answer in zip(asked, run(engine, asked)):
        assert list(answer.token_ids) == hybrid.greedy(each.prompt, 6), each.id
    stats, loaded = engine.stats()[name], engine._lanes[name].model
    assert stats.rows > stats.forwards, "decoding requests shared forwards"
    assert stats.page_bytes == 256 * 4 * loaded.token_bytes + 128 * loaded.state_bytes
    assert stats.pages_used == 0


@pytest.mark.parametrize("name", ["qwen3_5_text", "falcon_h1"])
def test_many_requests_under_page_pressure_with_cancels(
    name: str, hybrids: Callable[[str], Hybrid], start: Callable[..., Engine]
) -> None:
    hybrid, choose = hybrids(name), random.Random(7)
    engine = start(
        models=lambda: {name: hybrid.folder}, page_size=4, num_pages=24, max_batch_tokens=24, max_rows=8
    )
    engine.load(name)
    asked = [hybrid.ask(str(at), prompt, 5 + at % 7) for at, prompt in enumerate(prompts(16, 40, seed=4))]
    handles = [engine.submit(each) for each in asked]
    dropped = set(choose.sample(range(16), 4))
    for at in dropped:
        time.sleep(0.02)
        handles[at].cancel()
    for at, (each, handle) in enumerate(zip(asked, handles)):
        try:
            answer = handle.wait(50)
        except Cancelled:
            assert at in dropped
            continue
        assert list(answer.token_ids) == hybrid.greedy(each.prompt, each.params.max_tokens), each.id
    stats = engine.stats()[name]
    assert stats.preemptions > 0
    assert (stats.running, stats.waiting, stats.pages_used) == (0, 0, 0)
    engine._lanes[name].scheduler.check()


def test_a_prefix_is_taken_over_where_its_state_was_kept(
    hybrids: Callable[[str], Hybrid], start: Callable[..., Engine]
) -> None:
    hybrid = hybrids("qwen3_5_text")
    engine = start(models=lambda: {hybrid.name: hybrid.folder}, page_size=4, max_batch_tokens=48)
    shared, first, second, third = ((7, 9, 11) * 20, (30, 31, 32), (40, 41), (50, 51, 52, 53))

    def ask(*prompt: int) -> int:
        each = hybrid.ask("one", prompt, 6)
        (answer,) = run(engine, [each])
        assert list(answer.token_ids) == hybrid.greedy(prompt, 6)
        return answer.cached_tokens

    assert ask(*shared, *first) == 0
    assert ask(*shared, *first) == 60, "the same prompt again"
    assert ask(*shared, *first, 5, 6) == 60, "the conversation goes on"
    assert ask(*shared[:32], *second) == 0, "where prompts part, no state was kept yet"
    assert ask(*shared[:32], *third) == 32, "but from then on it is"


def test_requests_that_begin_alike_wait_for_the_first_and_share(
    hybrids: Callable[[str], Hybrid], start: Callable[..., Engine]
) -> None:
    hybrid = hybrids("lfm2")
    engine = start(models=lambda: {hybrid.name: hybrid.folder}, page_size=4, max_batch_tokens=32)
    engine.load(hybrid.name)
    prompt = prompts(1, 1, seed=5)[0] * 57
    handles = [engine.submit(hybrid.ask(str(at), prompt, 5)) for at in range(6)]
    answers = [handle.wait(50) for handle in handles]
    assert {answer.token_ids for answer in answers} == {tuple(hybrid.greedy(prompt, 5))}
    assert sorted(answer.cached_tokens for answer in answers) == [0, *[56] * 5]


def test_hidden_states_come_whole_from_chunks(
    hybrids: Callable[[str], Hybrid], start: Callable[..., Engine]
) -> None:
    hybrid = hybrids("qwen3_5_text")
    engine = start(models=lambda: {hybrid.name: hybrid.folder}, page_size=4, max_batch_tokens=16)
    asked = prompts(5, 50, seed=9)
    handles = [engine.submit(EmbedRequest(f"e{at}", hybrid.name, prompt)) for at, prompt in enumerate(asked)]
    for prompt, handle in zip(asked, handles):
        assert torch.allclose(handle.wait(50).hidden, hybrid.hidden(prompt), atol=1e-4)


def test_a_forward_that_fails_leaves_the_states_as_they_were(
    hybrids: Callable[[str], Hybrid], start: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    hybrid = hybrids("qwen3_5_text")
    engine = start(models=lambda: {hybrid.name: hybrid.folder}, page_size=4, max_batch_tokens=16)
    engine.load(hybrid.name)
    network = engine._lanes[hybrid.name].model.network
    last, calls = network.model.layers[-1], iter(range(1000))
    forward = last.forward

    def sometimes(*args: Any, **kwargs: Any) -> Any:
        if next(calls) in (2, 5):
            raise MemoryError("for this test")
        return forward(*args, **kwargs)

    monkeypatch.setattr(last, "forward", sometimes)
    prompt = prompts(1, 1, seed=8)[0] * 30
    (answer,) = run(engine, [hybrid.ask("one", prompt, 8)])
    assert list(answer.token_ids) == hybrid.greedy(prompt, 8)


def test_what_cannot_go_on_from_a_state_is_refused(tmp_path: Path) -> None:
    """transformers computes the first Mamba's layers in one piece only."""
    config = AutoConfig.for_model(
        "jamba",
        **COMMON | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_dt_rank": 8},
        use_mamba_kernels=False,
    )
    folder = save_random(config, tmp_path / "jamba")
    with pytest.raises(model_module.Unsupported, match="something else on pages"):
        model_module.load(folder, torch.device("cpu"), torch.float32)
