"""The weight syntax of prompts: `(x)` is 1.1, `(x:1.3)` is 1.3, `\\(` a plain parenthesis. And CLIP's chunks.

Text and token ids only; encoders apply the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.platform.errors import Unsupported

Weighted = list[tuple[str, float]]
WeightedIds = list[tuple[int, float]]

_OPEN, _CLOSE = "\ue000", "\ue001"
_EMPHASIS = 1.1
_CHUNK_TOKENS = 75
_LONG_WORD_TOKENS = 8


def parse_weights(text: str) -> Weighted:
    """Pieces of a prompt with their weights. A parenthesis without a partner is plain text."""
    protected = text.replace("\\(", _OPEN).replace("\\)", _CLOSE)
    pieces = _split(protected, 1.0)
    return [(piece.replace(_OPEN, "(").replace(_CLOSE, ")"), weight) for piece, weight in pieces]


def without_weights(text: str) -> str:
    """The prompt as it reads when all weights are 1."""
    return "".join(piece for piece, _ in parse_weights(text))


def clip_chunks(text: str, encode_word: Callable[[str], Sequence[int]]) -> list[WeightedIds]:
    """A prompt's tokens in chunks of at most 75; a short word is never cut in two. At least one chunk."""
    chunks: list[WeightedIds] = [[]]
    for piece, weight in parse_weights(text):
        for word in piece.split():
            if word.startswith("embedding:"):
                raise Unsupported(
                    f"'{word}': textual inversion embeddings are not supported; write words instead"
                )
            _append(chunks, [(token, weight) for token in encode_word(word)])
    return chunks


def _append(chunks: list[WeightedIds], word: WeightedIds) -> None:
    if len(word) < _LONG_WORD_TOKENS and len(chunks[-1]) + len(word) > _CHUNK_TOKENS:
        chunks.append([])
    while word:
        room = _CHUNK_TOKENS - len(chunks[-1])
        if room == 0:
            chunks.append([])
            continue
        chunks[-1].extend(word[:room])
        word = word[room:]


def _split(text: str, weight: float) -> Weighted:
    pieces: Weighted = []
    plain = 0
    position = 0
    while position < len(text):
        end = _partner(text, position) if text[position] == "(" else None
        if end is None:
            position += 1
            continue
        if plain < position:
            pieces.append((text[plain:position], weight))
        pieces.extend(_split(*_group(text[position + 1 : end], weight)))
        plain = position = end + 1
    if plain < len(text):
        pieces.append((text[plain:], weight))
    return pieces


def _partner(text: str, start: int) -> int | None:
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return None


def _group(inside: str, weight: float) -> tuple[str, float]:
    """What stands in parentheses, and its weight: an explicit one replaces that of the surroundings."""
    before, colon, number = inside.rpartition(":")
    if colon and before:
        try:
            return before, float(number)
        except ValueError:
            pass
    return inside, weight * _EMPHASIS
