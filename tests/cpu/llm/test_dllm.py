"""Block-diffusion models against a plain reading of their algorithms: one request, no pages, and everything
computed anew at each step.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, LlamaConfig

from runtime.llm import model
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    Completion,
    EmbedRequest,
    Grammar,
    Message,
    SamplingParams,
    Token,
    Tool,
)
from runtime.llm.dllm.families import Llada2MoeConfig, SdarConfig, SdarMoeConfig
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.errors import RuntimeFault, Unsupported
from tests.cpu.llm.conftest import save_random, tiny_llama

MASK = 257
END = 1
SIZES = {
    "vocab_size": 258,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "bos_token_id": 0,
    "eos_token_id": END,
    "mask_token_id": MASK,
}
EXPERTS = {"moe_intermediate_size": 32, "num_experts_per_tok": 2}
# With these thresholds a random model meets every case: sure of several, sure of none, edits, no edits.
SETTINGS = {
    "low_confidence": {"threshold": 0.3},
    "joint_threshold": {"threshold": 0.3, "edit_threshold": 0.2, "max_checks": 3},
}


@dataclass(frozen=True)
class Family:
    """A saved model, and what transformers' own attention makes of it."""

    folder: Path
    network: Any
    length: int

    def probabilities(self, tokens: Sequence[int]) -> torch.Tensor:
        """Of every position's own token, all tokens seen by blocks."""
        blocks = torch.arange(len(tokens)) // self.length
        hidden = blocks[None, :] > blocks[:, None]
        mask = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)[None, None]
        with torch.no_grad():
            logits = self.network(torch.tensor([list(tokens)]), attention_mask=mask, use_cache=False).logits[
                0
            ]
        logits[:, MASK] = -torch.inf
        return logits.softmax(-1)


@pytest.fixture(scope="session", params=["sdar, blocks of 4", "llada2, blocks of 32"])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    configs = {
        "sdar, blocks of 4": SdarConfig(**SIZES),
        "llada2, blocks of 32": Llada2MoeConfig(
            **SIZES, **EXPERTS, num_experts=4, n_group=2, topk_group=1, partial_rotary_factor=0.5
        ),
    }
    config = configs[request.param]
    with building:
        folder = save_random(config, tmp_path_factory.mktemp("dllm") / config.model_type)
        network = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
    return Family(folder, network.eval(), config.block_length)


@pytest.fixture
def serve(family: Family) -> Iterator[Callable[..., Engine]]:
    engines = []

    def make(algorithm: str = "low_confidence", **settings: Any) -> Engine:
        plain = {"num_pages": 256, "threads": 1, "dtype": torch.float32, "dllm_settings": SETTINGS[algorithm]}
        models = {"tiny": family.folder}
        engines.append(Engine(lambda: models, dllm_algorithm=algorithm, **{**plain, **settings}))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@dataclass
class Seen:
    """That the cases were met."""

    several: int = 0
    surest: int = 0
    edits: int = 0
    steps: int = 0


def low_confidence(family: Family, before: list[int], block: list[int], fixed: int, seen: Seen) -> list[int]:
    while MASK in block:
        seen.steps += 1
        confidence, best = family.probabilities(before + block)[len(before) :].max(-1)
        confidence[torch.tensor(block) != MASK] = -1.0
        accepted = confidence > SETTINGS["low_confidence"]["threshold"]
        seen.several += int(accepted.sum() > 1)
        if not accepted.any():
            seen.surest += 1
            accepted[confidence.argmax()] = True
        block = torch.where(accepted, best, torch.tensor(block)).tolist()
    return block


def joint_threshold(family: Family, before: list[int], block: list[int], fixed: int, seen: Seen) -> list[int]:
    limits, checks = SETTINGS["joint_threshold"], 0
    while True:
        seen.steps += 1
        now = torch.tensor(block)
        confidence, best = family.probabilities(before + block)[len(before) :].max(-1)
        empty = now == MASK
        accepted = empty & (confidence > limits["threshold"])
        if empty.any() and not accepted.any():
            seen.surest += 1
            accepted[confidence.masked_fill(~empty, -1.0).argmax()] = True
        changed = ~empty & (best != now) & (confidence > limits["edit_threshold"])
        changed[:fixed] = False
        seen.edits += int(changed.sum())
        block = torch.where(accepted | changed, best, now).tolist()
        checks += int(not empty.any())
        if MASK not in block and (checks >= limits["max_checks"] or not (empty.any() or changed.any())):
            return block


WRITE = {"low_confidence": low_confidence, "joint_threshold": joint_threshold}


def written(
    family: Family, algorithm: str, prompt: Sequence[int], count: int, seen: Seen | None = None
) -> list[int]:
    tokens = list(prompt)
    while True:
        start = len(tokens) // family.length * family.length
        before, fixed = tokens[:start], tokens[start:]
        block = fixed + [MASK] * (family.length - len(fixed))
        whole = WRITE[algorithm](family, before, block, len(fixed), seen or Seen())
        for token in whole[len(fixed) :]:
            tokens.append(token)
            if token == END or len(tokens) == len(prompt) + count:
                return tokens[len(prompt) :]


known = cache(written)


def prompts(count: int, longest: int = 70, seed: int = 0) -> list[tuple[int, ...]]:
    choose = random.Random(seed)
    return [tuple(choose.randint(2, 256) for _ in range(choose.randint(1, longest))) for _ in range(count)]


def ask(name: str, prompt: Sequence[int], count: int, **params: Any) -> CompleteRequest:
    settings = {"max_tokens": count, "temperature": 0.0} | params
    return CompleteRequest(name, "tiny", tuple(prompt), SamplingParams(**settings))


def answers(engine: Engine, asked: Sequence[CompleteRequest]) -> list[Completion]:
    return [handle.wait(50) for handle in [engine.submit(each) for each in asked]]


@pytest.mark.parametrize("algorithm", list(WRITE))
def test_an_answer_is_what_the_algorithm_says(
    algorithm: str, family: Family, serve: Callable[..., Engine]
) -> None:
    engine, seen = serve(algorithm), Seen()
    for number, prompt in enumerate(prompts(4)):
        (got,) = answers(engine, [ask(str(number), prompt, 45)])
        assert list(got.token_ids) == written(family, algorithm, prompt, 45, seen), prompt
    assert seen.surest > 3
    assert seen.steps > 20
    assert (seen.edits if algorithm == "joint_threshold" else seen.several) > 3, seen


@pytest.mark.parametrize("algorithm", list(WRITE))
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="roomy"),
        pytest.param({"max_batch_tokens": 40, "page_size": 4}, id="small chunks"),
        pytest.param({"max_batch_tokens": 80, "tokens": 200}, id="little memory"),
    ],
)
def test_a_mixed_batch_is_what_the_algorithm_says_for_each(
    settings: dict[str, int], algorithm: str, family: Family, serve: Callable[..., Engine]
) -> None:
    settings = dict(settings)
    if "tokens" in settings:
        settings["page_size"] = family.length
        settings["num_pages"] = settings.pop("tokens") // family.length
    engine = serve(algorithm, **settings)
    asked = [ask(str(number), prompt, 20 + 7 * number) for number, prompt in enumerate(prompts(7, seed=3))]
    got = answers(engine, asked)
    for each, answer in zip(asked, got):
        want = known(family, algorithm, each.prompt, each.params.max_tokens)  # type: ignore[arg-type]
        assert list(answer.token_ids) == want, each.id
        assert answer.finish_reason == ("stop" if want[-1] == END else "length")
    stats = engine.stats()["tiny"]
    assert stats.rows > 1.5 * stats.forwards, "blocks at different steps share forwards"
    assert (stats.preemptions > 0) == (settings.get("max_batch_tokens") == 80)
    assert stats.pages_used == 0


def test_a_known_beginning_is_not_computed_again_and_changes_nothing(
    family: Family, serve: Callable[..., Engine]
) -> None:
    engine = serve()
    beginning = prompts(1, seed=5)[0] * 100
    tails = prompts(4, longest=30, seed=6)
    asked = [ask(str(number), (*beginning[:100], *tail), 12) for number, tail in enumerate(tails)]
    got = [*answers(engine, asked[:1]), *answers(engine, asked[1:])]
    for each, answer in zip(asked, got):
        assert list(answer.token_ids) == written(family, "low_confidence", list(each.prompt), 12)  # type: ignore[arg-type]
    assert [answer.cached_tokens for answer in got] == [0, 96, 96, 96]
    whole = beginning[:96]
    want = written(family, "low_confidence", whole, 12)
    again = answers(engine, [ask(name, whole, 12) for name in "ab"])
    assert [list(each.token_ids) for each in again] == [want, want]
    assert again[0].cached_tokens == 96, "a prompt of whole blocks is known whole"


def test_tokens_stream_and_an_end_inside_a_block_ends_the_answer(
    family: Family, serve: Callable[..., Engine]
) -> None:
    engine = serve()
    (prompt,) = prompts(1, seed=8)
    (whole,) = answers(engine, [ask("whole", prompt, 60, ignore_eos=True)])
    end = whole.token_ids[17]
    handle = engine.submit(ask("cut", prompt, 60, ignore_eos=True, stop_token_ids=(end,)))
    cut = handle.wait(30)
    assert cut.token_ids == whole.token_ids[: whole.token_ids.index(end) + 1]
    assert cut.finish_reason == "stop"
    assert whole.text.startswith(cut.text)

    async def listen() -> list[int]:
        return [event.token_id async for event in handle if isinstance(event, Token)]

    assert tuple(asyncio.run(listen())) == cut.token_ids


def test_a_stop_string_ends_the_answer(serve: Callable[..., Engine]) -> None:
    engine = serve()
    (prompt,) = prompts(1, seed=9)
    (whole,) = answers(engine, [ask("whole", prompt, 40, ignore_eos=True)])
    middle = len(whole.text) // 2
    stop = whole.text[middle : middle + 2]
    assert len(stop) == 2
    (cut,) = answers(engine, [ask("cut", prompt, 40, ignore_eos=True, stop=(stop,))])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    assert cut.finish_reason == "stop"


def test_a_seeded_answer_does_not_depend_on_its_company(serve: Callable[..., Engine]) -> None:
    engine = serve("joint_threshold")
    mine = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 3}
    (prompt,) = prompts(1, seed=10)
    (alone,) = answers(engine, [ask("alone", prompt, 30, **mine)])
    crowd = [ask(str(n), each, 25, temperature=1.1, seed=n) for n, each in enumerate(prompts(5, seed=11))]
    together = answers(engine, [*crowd[:2], ask("together", prompt, 30, **mine), *crowd[2:]])[2]
    assert together.token_ids == alone.token_ids
    greedy, few = answers(engine, [ask("g", prompt, 30), ask("f", prompt, 30, temperature=1.0, top_k=1)])
    assert greedy.token_ids == few.token_ids
    assert greedy.token_ids != alone.token_ids


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"grammar": Grammar("regex", "a+")}, "grammar"),
        ({"logprobs": 2}, "logprobs"),
        ({"min_tokens": 3}, "min_tokens"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"min_p": 0.1}, "min_p"),
    ],
)
def test_what_blocks_cannot_follow_is_refused_by_name(
    params: dict[str, Any], word: str, serve: Callable[..., Engine]
) -> None:
    with pytest.raises(Unsupported, match=f"block-diffusion model does not support {word}; supported are"):
        serve().submit(ask("a", (5, 6), 8, **params)).wait(30)


def test_hidden_states_and_forced_calls_are_refused(serve: Callable[..., Engine]) -> None:
    engine = serve()
    with pytest.raises(RuntimeFault, match="no hidden states"):
        engine.submit(EmbedRequest("a", "tiny", (5, 6))).wait(30)
    chat = ChatRequest("b", "tiny", (Message("user", "hi"),), tools=(Tool("look"),), must_call=("look",))
    with pytest.raises(Unsupported, match="does not support must_call"):
        engine.submit(chat).wait(30)


def test_algorithms_and_settings_that_are_not_there_are_refused() -> None:
    with pytest.raises(Unsupported, match="supported: joint_threshold, low_confidence"):
        Engine(dict, dllm_algorithm="LeftToRight")
    with pytest.raises(Unsupported, match="no setting 'edit_threshold'; supported: threshold"):
        Engine(dict, dllm_settings={"edit_threshold": 0.5})


def test_files_name_weights_as_the_families_do(family: Family) -> None:
    with safe_open(family.folder / "model.safetensors", "pt") as file:
        names = set(file.keys())
    if family.length == 4:
        assert "model.layers.0.self_attn.q_norm.weight" in names
    else:
        assert "model.word_embeddings.weight" in names
        assert "model.layers.0.attention.query_key_value.weight" in names
        assert "model.layers.1.mlp.gate.expert_bias" in names
        assert "model.layers.1.mlp.experts.3.gate_proj.weight" in names


def loaded(config: Any, folder: Path) -> model.LanguageModel:
    with building:
        path = save_random(config, folder)
        return model.load(path, torch.device("cpu"), torch.float32)


def test_any_decoder_whose_configuration_tells_its_blocks_writes_in_blocks(tmp_path: Path) -> None:
    config = tiny_llama()
    assert loaded(config, tmp_path / "plain").blocks is None
    settings = {**config.to_dict(), "block_length": 8, "mask_token_id": 9}
    blocks = loaded(LlamaConfig(**settings), tmp_path / "blocks").blocks
    assert blocks is not None
    assert (blocks.length, blocks.mask_id) == (8, 9)
    moe = loaded(SdarMoeConfig(**{**SIZES, **EXPERTS}, num_experts=4, block_size=16), tmp_path / "moe").blocks
    assert moe is not None
    assert moe.length == 16
    assert json.loads((tmp_path / "moe" / "config.json").read_text())["model_type"] == "sdar_moe"


def test_a_mask_that_is_no_token_is_refused(tmp_path: Path) -> None:
    settings = {**tiny_llama().to_dict(), "block_length": 8, "mask_token_id": 300}
    with pytest.raises(Unsupported, match="a mask among its 258 tokens"):
        loaded(LlamaConfig(**settings), tmp_path / "blocks")
