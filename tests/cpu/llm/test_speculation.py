"""Guessing tokens changes how many forwards an answer takes, and nothing in the answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from runtime.llm.answer import Answer
from runtime.llm.api import CompleteRequest, Completion, Grammar, SamplingParams
from runtime.llm.engine import Engine
from runtime.llm.sample import choice
from runtime.llm.sequence import TokenSequence
from runtime.llm.writing import TokenWriter
from runtime.platform.errors import Unsupported

Greedy = Callable[[Sequence[int], int], list[int]]

# The tiny model says a thing twice when it has three letters, and hardly ever when it has all.
FEW_LETTERS = tuple((token, 100.0) for token in (66, 67, 68))
SETTINGS = {
    "greedy": {"temperature": 0.0},
    "drawn": {"temperature": 0.6, "seed": 5},
    "drawn of few": {"temperature": 1.3, "top_k": 2, "top_p": 0.9, "min_p": 0.02, "seed": 6},
    "penalties": {
        "temperature": 0.0,
        "repetition_penalty": 1.01,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.2,
    },
    "drawn with penalties": {"temperature": 0.4, "frequency_penalty": 0.1, "seed": 7},
    "late end": {
        "temperature": 0.0,
        "logit_bias": (*((token, 80.0) for token in (66, 67, 68)), (1, 100.0)),
        "min_tokens": 30,
    },
    "log probabilities": {"temperature": 0.0, "logprobs": 3},
    "drawn log probabilities": {"temperature": 0.5, "logprobs": 2, "seed": 8},
    "stop token": {"temperature": 0.0, "stop_token_ids": (1,), "logit_bias": (*FEW_LETTERS, (1, 99.5))},
    "stop string": {"temperature": 0.5, "seed": 9, "stop": ("aabc", "bbca", "cabb", "cbaa", "accc")},
    "grammar": {"temperature": 0.0, "grammar": Grammar("regex", "(ab|ba){12}")},
}


@pytest.fixture(scope="module")
def engines(tiny: Path) -> Iterator[tuple[Engine, Engine]]:
    """One that guesses and one that does not."""
    plain = {"models": lambda: {"tiny": tiny}, "num_pages": 256, "threads": 1, "dtype": torch.float32}
    both = Engine(**plain, speculative_algorithm="NGRAM", num_draft_tokens=5), Engine(**plain)  # type: ignore[arg-type]
    yield both
    for engine in both:
        engine.close()


def requests(name: str, count: int = 3) -> list[CompleteRequest]:
    choose = random.Random(name)
    settings = {"max_tokens": 50, "logit_bias": FEW_LETTERS} | SETTINGS[name]
    params = SamplingParams(**settings)  # type: ignore[arg-type]
    phrases = [[choose.randint(2, 257) for _ in range(12)] for _ in range(count)]
    return [
        CompleteRequest(f"{name} {number}", "tiny", tuple(phrase * 2), params)
        for number, phrase in enumerate(phrases)
    ]


def answers(engine: Engine, asked: Sequence[CompleteRequest]) -> list[Completion]:
    return [handle.wait(50) for handle in [engine.submit(each) for each in asked]]


@pytest.mark.parametrize("name", list(SETTINGS))
def test_an_answer_is_the_same_with_guesses(name: str, engines: tuple[Engine, Engine]) -> None:
    guessing, plain = engines
    asked = requests(name)
    for got, want in zip(answers(guessing, asked), answers(plain, asked), strict=True):
        assert (got.token_ids, got.text, got.finish_reason) == (want.token_ids, want.text, want.finish_reason)
        assert len(got.logprobs) == len(want.logprobs)
        for mine, theirs in zip(got.logprobs, want.logprobs):
            assert mine.chosen.token_id == theirs.chosen.token_id
            assert mine.chosen.logprob == pytest.approx(theirs.chosen.logprob, abs=1e-4)
            assert [each.token_id for each in mine.top] == [each.token_id for each in theirs.top]


def test_all_kinds_together_answer_as_without_guesses_in_fewer_forwards(
    engines: tuple[Engine, Engine],
) -> None:
    asked = [each for name in SETTINGS for each in requests(name, count=2)]
    before = [engine.stats()["tiny"] for engine in engines]
    got, want = (answers(engine, asked) for engine in engines)
    assert [each.token_ids for each in got] == [each.token_ids for each in want]
    guessing, plain = (engine.stats()["tiny"] for engine in engines)
    num_accepted = guessing.guesses_accepted - before[0].guesses_accepted
    assert num_accepted > 100
    assert guessing.guesses_proposed - before[0].guesses_proposed > num_accepted
    assert guessing.rows - before[0].rows <= plain.rows - before[1].rows - num_accepted // 2
    assert plain.guesses_proposed == 0


@pytest.mark.parametrize("pages", [256, 40], ids=["roomy", "little memory"])
def test_greedy_answers_equal_those_of_generate(
    pages: int, start: Callable[..., Engine], greedy: Greedy
) -> None:
    engine = start(
        speculative_algorithm="NGRAM", num_draft_tokens=7, num_pages=pages, page_size=4, max_batch_tokens=32
    )
    params = SamplingParams(max_tokens=40, temperature=0.0)
    prompts = [tuple(each.prompt) for each in requests("greedy", count=8)]
    asked = [CompleteRequest(str(number), "tiny", each, params) for number, each in enumerate(prompts)]
    for each, got in zip(asked, answers(engine, asked)):
        assert list(got.token_ids) == greedy(each.prompt, 40)  # type: ignore[arg-type]
    assert engine.stats()["tiny"].pages_used == 0


def test_an_image_of_the_prompt_is_never_guessed() -> None:
    tokens, keys = [5, 6, 8, 99, 99, 7, 5, 6], [5, 6, 8, -1234, -1234, 7, 5, 6]
    sequence = TokenSequence("a", tokens, 20, keys=keys, computed=7)
    answer = Answer(choice(SamplingParams()), None, None, None)  # type: ignore[arg-type]
    answer.ngrams.learn(5)
    TokenWriter(5).draft(sequence, answer)
    assert sequence.draft == (8,)


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(Unsupported, match="supported is NGRAM"):
        Engine(dict, speculative_algorithm="EAGLE")
