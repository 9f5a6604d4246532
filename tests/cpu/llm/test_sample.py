"""Each filter against transformers' own, and each row against itself alone."""

from collections.abc import Sequence

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from runtime.llm.api import SamplingParams
from runtime.llm.sample import Place, choice, choose
from treadle_kernels import sample as kernel

VOCABULARY = 1000
PARAMS = [
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_k=1),
    SamplingParams(temperature=1.5, top_k=30),
    SamplingParams(temperature=0.8, top_p=0.5),
    SamplingParams(temperature=3.0, top_p=0.999),
    SamplingParams(temperature=1.0, min_p=0.2),
    SamplingParams(temperature=1.2, top_k=50, top_p=0.8, min_p=0.05),
    SamplingParams(temperature=1.0, top_k=600, top_p=0.9),
    SamplingParams(temperature=1.0, repetition_penalty=1.7, top_k=20),
]


def logits(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 3


def expected_shares(scores: torch.Tensor, params: SamplingParams, history: Sequence[int]) -> torch.Tensor:
    warpers = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(params.repetition_penalty)])
    warpers.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k:
        warpers.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        warpers.append(TopPLogitsWarper(params.top_p))
    if params.min_p:
        warpers.append(MinPLogitsWarper(params.min_p))
    return warpers(torch.tensor([list(history)]), scores[None].clone())[0].softmax(-1)


@pytest.mark.parametrize("params", PARAMS, ids=str)
def test_draws_have_the_distribution_that_transformers_filters_give(params: SamplingParams) -> None:
    scores, history = logits(1)[0], list(range(0, 200, 7))
    want = expected_shares(scores, params, history)
    count = 4000
    fair = scores.clone()
    if params.repetition_penalty != 1:
        kernel.penalise_repetition(fair, torch.tensor(history), params.repetition_penalty)
    grid = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    got = kernel.draw(
        fair.expand(count, -1),
        grid,
        torch.full((count,), params.temperature),
        torch.full((count,), params.top_k),
        torch.full((count,), params.top_p, dtype=torch.float64),
        torch.full((count,), params.min_p, dtype=torch.float64),
    )
    share = torch.bincount(got, minlength=VOCABULARY) / count
    # An even grid of random numbers hits each token within one draw of its probability.
    assert (share - want).abs().max() <= 1.5 / count + 1e-4
    assert (want[got] > 0).all(), "a filtered token was drawn"


def test_a_row_alone_draws_what_it_draws_in_company() -> None:
    scores = logits(len(PARAMS), seed=1)
    seeded = [
        SamplingParams(**{**{f: getattr(p, f) for f in p.__slots__}, "seed": n}) for n, p in enumerate(PARAMS)
    ]
    histories = [[1, 2, 3]] * len(seeded)
    together = choose(
        scores.clone(), [Place(choice(each), past) for each, past in zip(seeded, histories)]
    ).tokens
    alone = [
        choose(scores[row : row + 1].clone(), [Place(choice(each), histories[0])]).tokens[0]
        for row, each in enumerate(seeded)
    ]
    assert together == alone


def test_greedy_rows_take_the_best_and_penalties_count_for_them() -> None:
    scores = logits(2)
    best = scores[0].argmax().item()
    greedy = SamplingParams(temperature=0)
    harsh = SamplingParams(temperature=0, repetition_penalty=1e6)
    tokens = choose(
        scores[:1].repeat(2, 1), [Place(choice(greedy), [best]), Place(choice(harsh), [best])]
    ).tokens
    assert tokens[0] == best
    assert tokens[1] != best


def test_the_largest_random_number_still_draws_a_kept_token() -> None:
    almost_one = torch.tensor([1 - 2**-53], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    scores = torch.tensor([[0.0, 5.0, -torch.inf, -torch.inf]])
    token = kernel.draw(scores, almost_one, one.float(), torch.tensor([0]), one, one * 0)
    assert token.item() in (0, 1)
