"""Penalties, biases, ends kept back and log probabilities, each against a plain reckoning and in company."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from runtime.llm.api import CompleteRequest, Completion, SamplingParams
from runtime.llm.engine import Engine
from runtime.llm.sample import Place, choice, choose
from runtime.platform.building import building
from runtime.platform.errors import Unsupported

Start = Callable[..., Engine]
VOCABULARY = 50
HISTORY = [1, 1, 2, 7, 7, 7, 8]
PROMPT_LENGTH = 3
PARAMS: dict[str, dict[str, Any]] = {
    "presence": {"presence_penalty": 1.5},
    "frequency": {"frequency_penalty": 0.7},
    "both": {"presence_penalty": -0.5, "frequency_penalty": 2.0, "repetition_penalty": 1.3},
    "bias": {"logit_bias": ((3, 50.0), (4, -100.0))},
    "min_tokens": {"min_tokens": 5, "max_tokens": 9},
    "plain": {},
    "logprobs": {"logprobs": 4, "frequency_penalty": 1.0},
}


def scores(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 2


def reckoned(row: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """The documented rules, one token after another."""
    want = row.clone()
    for token in set(HISTORY):
        want[token] = want[token] * (
            params.repetition_penalty if want[token] < 0 else 1 / params.repetition_penalty
        )
    for token, count in Counter(HISTORY[PROMPT_LENGTH:]).items():
        want[token] -= params.presence_penalty + count * params.frequency_penalty
    for token, bias in params.logit_bias:
        want[token] += bias
    if len(HISTORY) - PROMPT_LENGTH < params.min_tokens:
        want[[0, 9]] = -torch.inf
    return want


@pytest.mark.parametrize("name", list(PARAMS))
def test_scores_are_adjusted_as_reckoned(name: str) -> None:
    params = SamplingParams(temperature=0, **PARAMS[name])
    for seed in range(30):
        row = scores(1, seed)
        want = reckoned(row[0], params)
        chosen = choose(row, [Place(choice(params, PROMPT_LENGTH, (0, 9)), HISTORY)])
        assert torch.equal(row[0].isinf(), want.isinf())
        torch.testing.assert_close(row[0], want)
        assert chosen.tokens == [want.argmax().item()]


def test_a_row_alone_is_adjusted_as_in_company() -> None:
    params = [SamplingParams(seed=number, **more) for number, more in enumerate(PARAMS.values())]
    together = scores(len(params))
    mixed = choose(together.clone(), [Place(choice(each, PROMPT_LENGTH, (0,)), HISTORY) for each in params])
    for row, each in enumerate(params):
        alone = choose(together[row : row + 1].clone(), [Place(choice(each, PROMPT_LENGTH, (0,)), HISTORY)])
        assert alone.tokens == mixed.tokens[row : row + 1]
        assert alone.scores.get(0) == mixed.scores.get(row)


def ask(number: int, **params: Any) -> CompleteRequest:
    return CompleteRequest(
        str(number), "tiny", "the same words ", SamplingParams(**({"max_tokens": 20} | params))
    )


def test_requests_with_all_kinds_of_parameters_answer_as_if_alone(start: Start) -> None:
    requests = [ask(number, seed=number, **more) for number, more in enumerate(PARAMS.values())]
    engine = start()
    handles = [engine.submit(request) for request in requests]
    together = [handle.wait(60) for handle in handles]
    quiet = start()
    for request, got in zip(requests, together):
        alone = quiet.submit(request).wait(60)
        assert isinstance(alone, Completion)
        assert alone.token_ids == got.token_ids
        assert len(alone.logprobs) == len(got.logprobs)


def test_log_probabilities_are_the_models_own(start: Start, tiny: Path) -> None:
    answer = start().submit(ask(1, logprobs=5, temperature=1.7, seed=3, ignore_eos=True)).wait(60)
    prompt = start().submit(ask(2, max_tokens=1)).wait(60).prompt_tokens
    with building:
        network = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    ids = [2 + letter for letter in _positions("the same words ")] + list(answer.token_ids)
    assert len(ids) == prompt + len(answer.token_ids)
    with torch.inference_mode():
        want = network(torch.tensor([ids])).logits[0].log_softmax(-1)[prompt - 1 : -1]
    assert len(answer.logprobs) == len(answer.token_ids)
    for row, token, got in zip(want, answer.token_ids, answer.logprobs):
        assert got.chosen.token_id == token
        assert got.chosen.logprob == pytest.approx(row[token].item(), abs=1e-3)
        assert [each.token_id for each in got.top] == row.topk(5).indices.tolist()


def _positions(text: str) -> list[int]:
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    return [alphabet.index("Ġ" if letter == " " else letter) for letter in text]


def test_no_answer_ends_before_its_least_length(start: Start) -> None:
    engine = start()
    # a bias towards the end token ends an answer at once, if it may
    short = engine.submit(ask(1, logit_bias=((1, 100.0),), temperature=0)).wait(60)
    long = engine.submit(ask(2, logit_bias=((1, 100.0),), temperature=0, min_tokens=7)).wait(60)
    stopped = engine.submit(
        ask(3, logit_bias=((50, 100.0),), temperature=0, min_tokens=4, stop_token_ids=(50,))
    ).wait(60)
    assert (len(short.token_ids), short.finish_reason) == (1, "stop")
    assert (len(long.token_ids), long.finish_reason) == (8, "stop")
    assert (len(stopped.token_ids), stopped.token_ids[-1]) == (5, 50)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"min_tokens": 30}, "min_tokens"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": float("nan")}, "frequency_penalty"),
        ({"logit_bias": ((3, 101.0),)}, "between -100 and 100"),
        ({"logit_bias": ((258, 1.0),)}, "from 0 to 257"),
        ({"logprobs": 21}, "0 to 20"),
        ({"stop_token_ids": (9999,)}, "stop_token_ids must be from 0 to 257"),
        ({"top_k": 2**80}, "top_k"),
    ],
)
def test_values_that_mean_nothing_are_refused(start: Start, params: dict[str, Any], says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        start().submit(ask(1, **params)).wait(30)
