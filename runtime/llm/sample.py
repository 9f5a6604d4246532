"""How each row's next token is chosen from its logits; a row never depends on the others of its batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime.llm.api import SamplingParams
from runtime.platform.errors import Unsupported
from treadle_kernels import sample as kernel


@dataclass(frozen=True, slots=True)
class Choice:
    """A request's parameters with its own stream of random numbers."""

    params: SamplingParams
    random: random.Random


def choice(params: SamplingParams) -> Choice:
    return Choice(params, random.Random(params.seed))


def check(params: SamplingParams) -> None:
    """Raise `Unsupported` with a sentence for values that mean nothing."""
    limits = (
        (params.max_tokens >= 1, "max_tokens must be at least 1"),
        (0 <= params.temperature < float("inf"), "temperature must be 0 (greedy) or more"),
        (0 < params.top_p <= 1, "top_p must be above 0 and at most 1"),
        (params.top_k >= 0, "top_k must be 0 (off) or more"),
        (0 <= params.min_p <= 1, "min_p must be between 0 and 1"),
        (0 < params.repetition_penalty < float("inf"), "repetition_penalty must be above 0"),
        (all(params.stop), "a stop string must not be empty"),
    )
    for holds, sentence in limits:
        if not holds:
            raise Unsupported(sentence)


@torch.inference_mode()
def choose(logits: torch.Tensor, choices: Sequence[Choice], histories: Sequence[Sequence[int]]) -> list[int]:
    """One token for each row; `histories` are the tokens so far, which a repetition penalty looks at."""
    # logits: [N, V]
    assert len(logits) == len(choices) == len(histories)
    for row, (each, history) in enumerate(zip(choices, histories)):
        if each.params.repetition_penalty != 1:
            seen = torch.tensor(sorted(set(history)), device=logits.device)
            kernel.penalise_repetition(logits[row], seen, each.params.repetition_penalty)
    tokens = logits.argmax(-1)
    drawn = [row for row, each in enumerate(choices) if each.params.temperature > 0]
    if drawn:
        tokens[drawn] = _draw(logits[drawn], [choices[row] for row in drawn])
    return tokens.tolist()


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
