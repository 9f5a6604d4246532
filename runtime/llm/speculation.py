"""Guesses at the next tokens, from what the sequence said before, and how many of them the model confirms.

Nothing that is delivered depends on a guess: a wrong one costs its share of a forward and no more. It knows
no tensors, no text, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 4
_SHORTEST = 2
_FIRST_TRUST = 2


class Ngrams:
    """One sequence's runs of a few tokens, and how each went on the last time that it was there."""

    def __init__(self) -> None:
        self._trust = _FIRST_TRUST
        self._follows: dict[tuple[int, ...], int] = {}
        self._num_noted = 0

    def propose(self, tokens: Sequence[int], count: int) -> tuple[int, ...]:
        """Up to `count` tokens that may follow; `tokens` only ever grow from call to call. What followed the
        longest run that the sequence ends in counts.
        """
        # The run at the very end is looked up before it is noted, or it would find itself.
        self._note(tokens, len(tokens) - 1)
        found = self._find(tokens)
        if found is None:
            return ()
        # A match that reaches into the end is a cycle, and goes on in what it has brought.
        period = len(tokens) - found
        return tuple(tokens[found + step % period] for step in range(min(count, self._trust)))

    def learn(self, num_right: int) -> None:
        """How many of the last guesses were right: so many and as many again are worth a guess next time."""
        self._trust = max(1, 2 * num_right)

    def _find(self, tokens: Sequence[int]) -> int | None:
        for length in range(min(_LONGEST, len(tokens)), _SHORTEST - 1, -1):
            found = self._follows.get(tuple(tokens[-length:]))
            if found is not None:
                return found
        return None

    def _note(self, tokens: Sequence[int], stop: int) -> None:
        for end in range(self._num_noted + 1, stop + 1):
            for length in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._follows[tuple(tokens[end - length : end])] = end
        self._num_noted = stop


def confirmed(draft: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
    """The tokens that are certain. `chosen` has the model's choice after none of the guesses, after one,
    after two ..., which means something as long as these are right.
    """
    assert len(chosen) == len(draft) + 1, (draft, chosen)
    for index, guess in enumerate(draft):
        if chosen[index] != guess:
            return tuple(chosen[: index + 1])
    return tuple(chosen)
