"""Requests of one batch name LoRA adapters, or none; each gets what peft's model of it alone computes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from runtime.llm.api import CompleteRequest, Completion, EmbedRequest, SamplingParams, TokenizeRequest
from runtime.llm.engine import Engine
from runtime.platform.errors import MissingFile, Unsupported
from runtime.platform.handle import Cancelled
from tests.cpu.llm.peft_folders import base, save_adapter

# peft asks transformers by an older name.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

Start = Callable[..., Engine]
Settings = dict[str, Any]
ATTENTION = ["q_proj", "v_proj"]
EVERYTHING = [*ATTENTION, "k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
KINDS: dict[str, Settings] = {
    "plain": {"r": 4, "lora_alpha": 8, "target_modules": ATTENTION},
    "stable": {"r": 8, "lora_alpha": 4, "target_modules": EVERYTHING, "use_rslora": True},
    "uneven": {
        "r": 4,
        "lora_alpha": 6,
        "target_modules": ["q_proj", "o_proj", "down_proj"],
        "rank_pattern": {"layers.1.mlp.down_proj": 7, "o_proj": 2},
        "alpha_pattern": {"^model.layers.0.self_attn.q_proj": 12},
        "layers_to_transform": [0, 1],
    },
}
PROMPT = tuple(range(40, 110))


@pytest.fixture(scope="module")
def adapters(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("adapters")
    return {
        name: save_adapter(tiny, root / name, seed, **settings)
        for seed, (name, settings) in enumerate(KINDS.items())
    }


@pytest.fixture(scope="module")
def networks(tiny: Path, adapters: dict[str, Path]) -> dict[str | None, Any]:
    """Each adapter by itself, as peft runs it."""
    made = {name: peft.PeftModel.from_pretrained(base(tiny), path).eval() for name, path in adapters.items()}
    return {None: base(tiny), **made}


def complete(
    name: str, adapter: str | None, prompt: Sequence[int] = PROMPT, count: int = 10
) -> CompleteRequest:
    params = SamplingParams(max_tokens=count, temperature=0, ignore_eos=True, logprobs=0)
    return CompleteRequest(name, "tiny", tuple(prompt), params, adapter=adapter)


@torch.inference_mode()
def is_from(network: Any, prompt: Sequence[int], answer: Completion) -> bool:
    """The same greedy tokens, with log probabilities equal to 1e-4."""
    ids = torch.tensor([[*prompt, *answer.token_ids]])
    scores = network(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    best = scores.max(-1)
    mine = torch.tensor([each.chosen.logprob for each in answer.logprobs])
    return best.indices.tolist() == list(answer.token_ids) and bool(
        torch.allclose(best.values, mine, atol=1e-4)
    )


@pytest.mark.parametrize("settings", [{}, {"max_batch_tokens": 24, "page_size": 4}], ids=["whole", "chunks"])
def test_a_mixed_batch_computes_what_peft_computes_for_each_alone(
    settings: Settings, start: Start, adapters: dict[str, Path], networks: dict[str | None, Any]
) -> None:
    engine = start(adapters=lambda: adapters, **settings)
    engine.load("tiny")
    asked = [
        complete(f"{adapter} {number}", adapter, PROMPT[number * 7 :], 6 + 5 * number)
        for number in range(3)
        for adapter in networks
    ]
    handles = [engine.submit(each) for each in asked]
    hidden = {
        name: engine.submit(EmbedRequest(f"h {name}", "tiny", PROMPT, adapter=name)) for name in networks
    }
    answers = [handle.wait(50) for handle in handles]
    for each, answer in zip(asked, answers, strict=True):
        assert is_from(networks[each.adapter], each.prompt, answer), each.id
    for name, handle in hidden.items():
        out = networks[name](input_ids=torch.tensor([PROMPT]), output_hidden_states=True)
        assert (handle.wait(50).hidden - out.hidden_states[-1][0]).abs().max() < 1e-4, name
    assert len({answer.token_ids for answer in answers[:4]}) == 4, "the adapters are nothing alike"
    stats = engine.stats()["tiny"]
    assert stats.rows > 2 * stats.forwards, "requests shared forwards"
    assert 0 < stats.adapter_bytes < 100_000


def test_a_prefix_is_shared_under_the_same_adapter_only(
    start: Start, adapters: dict[str, Path], networks: dict[str | None, Any]
) -> None:
    engine = start(adapters=lambda: adapters, page_size=8)
    for adapter in (*networks, *networks):
        first = engine.submit(complete("a", adapter)).wait(30)
        again = engine.submit(complete("b", adapter, (*PROMPT, 7, 8))).wait(30)
        assert again.cached_tokens >= 64
        assert is_from(networks[adapter], (*PROMPT, 7, 8), again)
        assert is_from(networks[adapter], PROMPT, first)
    cached = [engine.submit(complete("c", None, (5, *PROMPT))).wait(30).cached_tokens for _ in range(2)]
    assert cached == [0, 64]


def test_the_first_request_under_each_adapter_finds_nothing_of_the_others(
    start: Start, adapters: dict[str, Path]
) -> None:
    engine = start(adapters=lambda: adapters, page_size=8)
    found = [engine.submit(complete("a", name)).wait(30).cached_tokens for name in (None, *adapters, None)]
    assert found == [0, 0, 0, 0, 64]


def test_cancelling_one_leaves_the_others_answers(
    start: Start, adapters: dict[str, Path], networks: dict[str | None, Any]
) -> None:
    engine = start(adapters=lambda: adapters)
    long = [engine.submit(complete(f"long {name}", name, count=400)) for name in networks]
    kept = engine.submit(complete("kept", "stable", count=60))
    time.sleep(0.05)
    for handle in long:
        handle.cancel()
    assert is_from(networks["stable"], PROMPT, kept.wait(50))
    for handle in long:
        with pytest.raises(Cancelled):
            handle.wait(20)
    lane = engine._lanes["tiny"]
    engine.unload()
    assert engine.stats() == {}
    assert not any(module._forward_hooks for module in lane.model.network.modules()), "layers are as before"


def test_a_name_after_a_colon_is_an_adapter(start: Start, adapters: dict[str, Path]) -> None:
    engine = start(adapters=lambda: adapters)
    by_field = engine.submit(complete("a", "plain")).wait(30)
    params = complete("b", None).params
    by_name = engine.submit(CompleteRequest("b", "tiny:plain", PROMPT, params)).wait(30)
    assert by_name.token_ids == by_field.token_ids
    tokens = engine.submit(TokenizeRequest("c", "tiny:plain", "abc")).wait(30)
    assert len(tokens.token_ids) == 3
    with pytest.raises(Unsupported, match="one adapter; named are plain and stable"):
        engine.submit(CompleteRequest("d", "tiny:plain", PROMPT, params, adapter="stable")).wait(30)
    with pytest.raises(MissingFile, match="no adapter called other; there are: plain, stable, uneven"):
        engine.submit(complete("e", "other")).wait(30)
    with pytest.raises(MissingFile, match="no language model called nobody"):
        engine.submit(CompleteRequest("f", "nobody:plain", PROMPT, params)).wait(30)


def test_little_room_keeps_the_last_one_used_and_answers_all(
    start: Start, adapters: dict[str, Path], networks: dict[str | None, Any]
) -> None:
    engine = start(adapters=lambda: adapters, max_adapter_bytes=1)
    handles = {name: engine.submit(complete(str(name), name, count=30)) for name in networks}
    for name, handle in handles.items():
        assert is_from(networks[name], PROMPT, handle.wait(50)), name
    assert len(engine._lanes["tiny"].adapters._kept) == 1


def test_a_folder_that_changed_is_read_anew(
    start: Start, adapters: dict[str, Path], networks: dict[str | None, Any], tmp_path: Path
) -> None:
    folder = copytree(adapters["plain"], tmp_path / "mine")
    engine = start(adapters=lambda: {"mine": folder}, page_size=8)
    assert is_from(networks["plain"], PROMPT, engine.submit(complete("a", "mine")).wait(30))
    for file in adapters["stable"].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    changed = engine.submit(complete("b", "mine")).wait(30)
    assert changed.cached_tokens == 0
    assert is_from(networks["stable"], PROMPT, changed)


def _config(**changed: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "adapter_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    return change


def _weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / "adapter_model.safetensors"
        save_file(change(load_file(path)), path)

    return write


def _renamed(old: str, new: str) -> Callable[[Path], None]:
    return _weights(lambda tensors: {name.replace(old, new): each for name, each in tensors.items()})


def _resized(part: str, axis: int) -> Callable[[Path], None]:
    def cut(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {
            name: each.narrow(axis, 0, each.shape[axis] - 1).contiguous() if part in name else each
            for name, each in tensors.items()
        }

    return _weights(cut)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_config(use_dora=True), "is a DoRA; supported is plain LoRA"),
        (_config(bias="all"), "changes biases"),
        (_config(peft_type="LOHA"), "is a LOHA; supported is LORA"),
        (_config(modules_to_save=["lm_head"]), "sets modules_to_save"),
        (_config(layer_replication=[[0, 2]]), "sets layer_replication"),
        (_config(init_lora_weights="pissa"), "began as pissa"),
        (_config(r=5), "has rank 4 at model.layers.0.self_attn.q_proj where its configuration says 5"),
        (_config(r=None), "lacks r or lora_alpha"),
        (_renamed("self_attn.q_proj", "self_attn.query"), "self_attn.query, which is no linear layer"),
        (_renamed("model.layers.0.self_attn.q_proj", "lm_head"), "lm_head, which is no linear layer"),
        (_renamed("q_proj.lora_B", "q_proj.lora_magnitude"), "holds .*lora_magnitude"),
        (
            _resized("q_proj.lora_A", 1),
            r"is made for another model: at .* \(63, 64\) numbers, and the layer \(64, 64\)",
        ),
        (_resized("q_proj.lora_A", 0), "has no low-rank pair"),
        (lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"no"), "is damaged"),
        (lambda folder: (folder / "adapter_config.json").write_text("{"), "is not valid JSON"),
    ],
)
def test_what_is_no_fitting_lora_is_refused_with_a_sentence(
    damage: Callable[[Path], Any], sentence: str, lasting: Engine, damaged: Path
) -> None:
    damage(damaged)
    with pytest.raises(Unsupported, match=sentence):
        lasting.submit(complete("a", "damaged", count=1)).wait(20)
    assert lasting.submit(complete("b", None, count=1)).wait(20).token_ids


@pytest.fixture(scope="module")
def lasting(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    known = {"damaged": tmp_path_factory.getbasetemp() / "damaged"}
    settings: Settings = {"num_pages": 64, "threads": 1, "dtype": torch.float32}
    made = Engine(lambda: {"tiny": tiny}, adapters=lambda: known, **settings)
    yield made
    made.close()


@pytest.fixture
def damaged(adapters: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    return copytree(adapters["plain"], folder, dirs_exist_ok=True)
