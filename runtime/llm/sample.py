"""How each row's next token is chosen from its logits; a row never depends on the others of its batch."""

from __future__ import annotations

import random
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


@dataclass(frozen=True, slots=True)
class Choice:
    """A request's parameters with its own stream of random numbers and its place in its grammar.

    `end_ids` are kept back until `params.min_tokens` have come after the `prompt_length` first tokens.
    """

    params: SamplingParams
    random: random.Random
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
    """One token a row; `scores` has an entry for each row that asked for log probabilities."""

    tokens: list[int]
    scores: dict[int, Scores] = field(default_factory=dict)


def choice(
    params: SamplingParams,
    prompt_length: int = 0,
    end_ids: Iterable[int] = (),
    constraint: Constraint | None = None,
) -> Choice:
    return Choice(params, random.Random(params.seed), prompt_length, tuple(end_ids), constraint)


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
            params.logprobs is None or 0 <= params.logprobs <= _TOP_LOGPROBS_AT_MOST,
            f"log probabilities are given for 0 to {_TOP_LOGPROBS_AT_MOST} of the likeliest tokens",
        ),
        (free or not params.ignore_eos, "a grammar decides where the answer ends; it excludes ignore_eos"),
        (free or not params.min_tokens, "a grammar decides where the answer ends; it excludes min_tokens"),
    )
    for holds, sentence in limits:
        if not holds:
            raise Unsupported(sentence)


@torch.inference_mode()
def choose(logits: torch.Tensor, choices: Sequence[Choice], histories: Sequence[Sequence[int]]) -> Chosen:
    """One token for each row. `histories` are all tokens so far, which penalties look at; `logits` change."""
    # logits: [N, V]
    assert len(logits) == len(choices) == len(histories)
    scored = [row for row, each in enumerate(choices) if each.params.logprobs is not None]
    scores = logits[scored].float().log_softmax(-1)
    for row, (each, history) in enumerate(zip(choices, histories)):
        _adjust(logits[row], each, history)
    _constrain(logits, choices)
    tokens = logits.argmax(-1)
    drawn = [row for row, each in enumerate(choices) if each.params.temperature > _GREEDY_UP_TO]
    if drawn:
        tokens[drawn] = _draw(logits[drawn], [choices[row] for row in drawn])
    chosen = tokens.tolist()
    pairs = zip(scored, scores)
    return Chosen(chosen, {row: _scores(of, chosen[row], choices[row].params.logprobs) for row, of in pairs})


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
    bound = {row: each.constraint for row, each in enumerate(choices) if each.constraint is not None}
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


def _draw(logits: torch.Tensor, choices: Sequence[Choice]) -> torch.Tensor:
    device = logits.device
    return kernel.draw(
        logits,
        torch.tensor([each.random.random() for each in choices], dtype=torch.float64, device=device),
        torch.tensor([each.params.temperature for each in choices], device=device),
        torch.tensor([each.params.top_k for each in choices], device=device),
        torch.tensor([each.params.top_p for each in choices], dtype=torch.float64, device=device),
        torch.tensor([each.params.min_p for each in choices], dtype=torch.float64, device=device),
    )
