"""How each row's next token is chosen from its logits; a row never depends on the others of its batch."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from runtime.llm import grammar
from runtime.llm.api import SamplingParams
from runtime.llm.grammar import Constraint
from runtime.platform.errors import Unsupported
from treadle_kernels import sample as kernel

# As in other servers; each one costs a sort of the vocabulary.
_TOP_LOGPROBS_AT_MOST = 20
# Scores that are divided by less overflow.
_GREEDY_UP_TO = 1e-5


class Numbers:
    """A request's own random numbers. One that is looked at stays the next one until it is used."""

    def __init__(self, seed: int | None) -> None:
        self._random = random.Random(seed)
        self._seen: deque[float] = deque()

    def look(self, ahead: int) -> float:
        while len(self._seen) <= ahead:
            self._seen.append(self._random.random())
        return self._seen[ahead]

    def use(self, count: int) -> None:
        for _ in range(min(count, len(self._seen))):
            self._seen.popleft()


@dataclass(frozen=True, slots=True)
class Choice:
    """A request's parameters with its own stream of random numbers and its place in its grammar.

    `end_ids` are kept back until `params.min_tokens` have come after the `prompt_length` first tokens.
    """

    params: SamplingParams
    numbers: Numbers
    prompt_length: int
    end_ids: tuple[int, ...]
    constraint: Constraint | None


@dataclass(frozen=True, slots=True)
class Scores:
    """The log probability of the chosen token, and token ids with theirs of the likeliest, best first."""

    chosen: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """One token a place; `scores` has an entry for each place whose request asked for log probabilities."""

    tokens: list[int]
    scores: dict[int, Scores] = field(default_factory=dict)


def choice(
    params: SamplingParams,
    prompt_length: int = 0,
    end_ids: Iterable[int] = (),
    constraint: Constraint | None = None,
) -> Choice:
    return Choice(params, Numbers(params.seed), prompt_length, tuple(end_ids), constraint)


def check(params: SamplingParams, vocabulary_size: int) -> None:
    """Raise `Unsupported` with a sentence for values that mean nothing."""
    free = params.grammar is None
    limits = (
        (params.max_tokens >= 1, "max_tokens must be at least 1"),
        (0 <= params.temperature < float("inf"), "temperature must be 0 (greedy) or more"),
        (0 < params.top_p <= 1, "top_p must be above 0 and at most 1"),
        (0 <= params.top_k < 2**31, "top_k must be between 0 (off) and 2**31 - 1"),
        (0 <= params.min_p <= 1, "min_p must be between 0 and 1"),
        (0 < params.repetition_penalty < float("inf"), "repetition_penalty must be above 0"),
        (all(params.stop), "a stop string must not be empty"),
        (0 <= params.min_tokens <= params.max_tokens, "min_tokens must be between 0 and max_tokens"),
        (abs(params.presence_penalty) <= 2, "presence_penalty must be between -2 and 2"),
        (abs(params.frequency_penalty) <= 2, "frequency_penalty must be between -2 and 2"),
        (
            all(abs(bias) <= 100 for _, bias in params.logit_bias),
            "a logit_bias must be between -100 and 100",
        ),
        (
            all(0 <= token < vocabulary_size for token, _ in params.logit_bias),
            f"the tokens of logit_bias must be from 0 to {vocabulary_size - 1}",
        ),
        (
            all(0 <= token < vocabulary_size for token in params.stop_token_ids),
            f"stop_token_ids must be from 0 to {vocabulary_size - 1}",
        ),
        (
            0 <= (params.logprobs or 0) <= _TOP_LOGPROBS_AT_MOST
            and 0 <= (params.prompt_logprobs or 0) <= _TOP_LOGPROBS_AT_MOST,
            f"log probabilities are given for 0 to {_TOP_LOGPROBS_AT_MOST} of the likeliest tokens",
        ),
        (free or not params.ignore_eos, "a grammar decides where the answer ends; it excludes ignore_eos"),
        (free or not params.min_tokens, "a grammar decides where the answer ends; it excludes min_tokens"),
    )
    for holds, sentence in limits:
        if not holds:
            raise Unsupported(sentence)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token is chosen: after `history`, all tokens of its sequence so far, of which the last `ahead`
    are not certain yet.
    """

    choice: Choice
    history: Sequence[int]
    ahead: int = 0


@torch.inference_mode()
def choose(logits: torch.Tensor, places: Sequence[Place]) -> Chosen:
    """One token for each place, by its own parameters and as if all its history were certain.

    `logits` change. Random numbers are looked at, not used.
    """
    # logits: [N, V]
    assert len(logits) == len(places)
    scored = [row for row, each in enumerate(places) if each.choice.params.logprobs is not None]
    logprobs = logits[scored].float().log_softmax(-1)
    for row, each in enumerate(places):
        _adjust(logits[row], each.choice, each.history)
    _constrain(logits, [each.choice for each in places])
    tokens = logits.argmax(-1)
    drawn = [row for row, each in enumerate(places) if is_drawn(each.choice.params)]
    if drawn:
        tokens[drawn] = _draw(logits[drawn], [places[row] for row in drawn])
    chosen = tokens.tolist()
    wanted = [places[row].choice.params.logprobs for row in scored]
    found = zip(scored, logprobs, wanted)
    return Chosen(chosen, {row: _scores(of, chosen[row], count) for row, of, count in found})


@torch.inference_mode()
def scores(logits: torch.Tensor, tokens: Sequence[int], count: int) -> list[Scores]:
    """Of tokens that are known, each with `count` of the likeliest in its place."""
    # logits: [N, V]
    logprobs = logits.float().log_softmax(-1)
    return [_scores(of, token, count) for of, token in zip(logprobs, tokens, strict=True)]


def is_drawn(params: SamplingParams) -> bool:
    """Whether chance has a part in it."""
    return params.temperature > _GREEDY_UP_TO


def _adjust(logits: torch.Tensor, choice: Choice, history: Sequence[int]) -> None:
    """In place, one row: penalties, biases, and no end before its time."""
    # logits: [V]
    params, num_generated = choice.params, len(history) - choice.prompt_length
    if params.repetition_penalty != 1:
        seen = torch.tensor(sorted(set(history)), device=logits.device)
        kernel.penalise_repetition(logits, seen, params.repetition_penalty)
    if num_generated and (params.presence_penalty or params.frequency_penalty):
        ids = torch.tensor(history[choice.prompt_length :], device=logits.device)
        seen, counts = ids.unique(return_counts=True)
        kernel.penalise_counts(logits, seen, counts, params.presence_penalty, params.frequency_penalty)
    if params.logit_bias:
        tokens, biases = zip(*params.logit_bias)
        added = torch.tensor(biases, dtype=logits.dtype, device=logits.device)
        logits.index_add_(0, torch.tensor(tokens, device=logits.device), added)
    if num_generated < params.min_tokens and choice.end_ids:
        logits[list(choice.end_ids)] = -torch.inf


def _constrain(logits: torch.Tensor, choices: Sequence[Choice]) -> None:
    constraints = {row: each.constraint for row, each in enumerate(choices) if each.constraint is not None}
    bound = {row: each for row, each in constraints.items() if each.active}
    if not bound:
        return
    rows = list(bound)
    allowed = grammar.fill(list(bound.values())).to(logits.device)
    if len(rows) == len(logits):
        kernel.forbid(logits, allowed)
    else:
        constrained = logits[rows]
        kernel.forbid(constrained, allowed)
        logits[rows] = constrained


def _scores(logprobs: torch.Tensor, token: int, count: int | None) -> Scores:
    best = logprobs.topk(count or 0)
    return Scores(logprobs[token].item(), tuple(zip(best.indices.tolist(), best.values.tolist())))


def _draw(logits: torch.Tensor, places: Sequence[Place]) -> torch.Tensor:
    device = logits.device
    params = [each.choice.params for each in places]
    numbers = [each.choice.numbers.look(each.ahead) for each in places]
    return kernel.draw(
        logits,
        torch.tensor(numbers, dtype=torch.float64, device=device),
        torch.tensor([each.temperature for each in params], device=device),
        torch.tensor([each.top_k for each in params], device=device),
        torch.tensor([each.top_p for each in params], dtype=torch.float64, device=device),
        torch.tensor([each.min_p for each in params], dtype=torch.float64, device=device),
    )
