from __future__ import annotations

import pytest

from runtime.diffusion.prompt_weights import clip_chunks, parse_weights, without_weights
from runtime.platform.errors import Unsupported


def letters(word: str) -> list[int]:
    return [ord(letter) for letter in word]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a cat", [("a cat", 1.0)]),
        ("a (cat)", [("a ", 1.0), ("cat", 1.1)]),
        ("((cat))", [("cat", 1.1 * 1.1)]),
        ("(cat:1.3) on", [("cat", 1.3), (" on", 1.0)]),
        ("((a:0.5) b)", [("a", 0.5), (" b", 1.1)]),
        ("(a:b)", [("a:b", 1.1)]),
        ("[cat]", [("[cat]", 1.0)]),
        (r"a \(b\) c", [("a (b) c", 1.0)]),
        (r"(a \(b\):1.2)", [("a (b)", 1.2)]),
        ("a ( b", [("a ( b", 1.0)]),
        ("a ) b", [("a ) b", 1.0)]),
        ("(a:1.2) ) (b", [("a", 1.2), (" ) (b", 1.0)]),
        ("(:1.2)", [(":1.2", 1.1)]),
        ("", []),
    ],
)
def test_pieces_and_their_weights(text: str, pieces: list[tuple[str, float]]) -> None:
    parsed = parse_weights(text)
    assert [piece for piece, _ in parsed] == [piece for piece, _ in pieces]
    assert [weight for _, weight in parsed] == pytest.approx([weight for _, weight in pieces])


def test_the_prompt_without_weights_reads_on() -> None:
    assert without_weights("a (red:1.3) (cat) \\(x\\)") == "a red cat (x)"


def test_an_empty_prompt_is_one_empty_chunk() -> None:
    assert clip_chunks("", letters) == [[]]


def test_a_short_word_is_not_cut_at_the_end_of_a_chunk() -> None:
    chunks = clip_chunks("a" * 74 + " bcd", letters)
    assert [len(chunk) for chunk in chunks] == [74, 3]


def test_a_long_word_fills_the_chunk_and_goes_on_in_the_next() -> None:
    chunks = clip_chunks("a " * 70 + "b" * 90, letters)
    assert [len(chunk) for chunk in chunks] == [75, 75, 10]


def test_weights_travel_with_the_tokens() -> None:
    assert clip_chunks("a (b:2)", letters) == [[(ord("a"), 1.0), (ord("b"), 2.0)]]


def test_an_embedding_is_refused_with_a_sentence() -> None:
    with pytest.raises(Unsupported, match="embedding:name"):
        clip_chunks("a embedding:name", letters)
