"""What rows that sample bring in models that write token by token: guesses go in, certain tokens come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import torch

from runtime.llm import sample, speculation
from runtime.llm.answer import Answer
from runtime.llm.sample import Place
from runtime.llm.sequence import Row, TokenSequence


class TokenWriter:
    """`num_guesses` tokens at most are guessed for a sequence at a time; 0 guesses nothing."""

    def __init__(self, num_guesses: int) -> None:
        self._num_guesses = num_guesses
        self.num_proposed = 0
        self.num_accepted = 0

    def draft(self, sequence: TokenSequence, answer: Answer) -> None:
        """Called before each step. The states of a grammar go forward only, so it gets no guesses."""
        if self._num_guesses and not sequence.is_prompt and answer.choice.constraint is None:
            guess = answer.ngrams.propose(sequence.keys, self._num_guesses)
            # A key that is no token stands where a prompt holds more than tokens, such as an image.
            sequence.draft = tuple(takewhile(lambda key: key >= 0, guess))

    def write(
        self, rows: Sequence[Row], answers: Sequence[Answer], logits: torch.Tensor
    ) -> list[tuple[int, ...]]:
        """Each row's new tokens. `logits` are those of all places of the first row, then of the next ..."""
        # logits: [N, V]
        chosen = sample.choose(logits, [place for pair in zip(rows, answers) for place in _places(*pair)])
        found, first = [], 0
        for row, answer in zip(rows, answers):
            tokens = speculation.confirmed(row.draft, chosen.tokens[first : first + row.num_sampled])
            answer.choice.numbers.use(len(tokens))
            scores = (chosen.scores.get(first + index) for index in range(len(tokens)))
            answer.scores.extend(each for each in scores if each is not None)
            if row.draft:
                answer.ngrams.learn(len(tokens) - 1)
            self.num_proposed += len(row.draft)
            self.num_accepted += len(tokens) - 1
            found.append(tokens)
            first += row.num_sampled
        return found


def _places(row: Row, answer: Answer) -> Iterator[Place]:
    """Before, between and after the guesses."""
    yield Place(answer.choice, row.sequence.tokens)
    for ahead in range(1, len(row.draft) + 1):
        yield Place(answer.choice, [*row.sequence.tokens, *row.draft[:ahead]], ahead)
