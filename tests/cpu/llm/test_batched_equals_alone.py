"""The promise of the language runtime: neither company nor scarce memory ever shows in a text."""

import random
import time
from collections.abc import Callable, Sequence

import pytest

from runtime.llm.api import CompleteRequest, Completion, SamplingParams
from runtime.llm.engine import Engine

Greedy = Callable[[Sequence[int], int], list[int]]
Start = Callable[..., Engine]


def prompts(count: int, longest: int, seed: int = 0) -> list[tuple[int, ...]]:
    choose = random.Random(seed)
    return [tuple(choose.randint(2, 257) for _ in range(choose.randint(1, longest))) for _ in range(count)]


def request(name: str, prompt: Sequence[int], count: int, **params: object) -> CompleteRequest:
    settings = SamplingParams(**({"max_tokens": count, "temperature": 0.0} | params))  # type: ignore[arg-type]
    return CompleteRequest(name, "tiny", tuple(prompt), settings)


def answers(engine: Engine, asked: Sequence[CompleteRequest], seed: int = 1) -> list[Completion]:
    """Submitted in bursts, so that requests join while others run."""
    choose = random.Random(seed)
    handles = []
    for each in asked:
        handles.append(engine.submit(each))
        if choose.random() < 0.3:
            time.sleep(0.004)
    return [handle.wait(50) for handle in handles]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="plain"),
        pytest.param({"page_size": 8}, id="pages of 8"),
        pytest.param({"max_batch_tokens": 24}, id="small chunks"),
        pytest.param({"page_size": 4, "num_pages": 60, "max_batch_tokens": 48}, id="little memory"),
    ],
)
def test_32_concurrent_requests_answer_as_generate_does(
    settings: dict[str, int], start: Start, greedy: Greedy
) -> None:
    engine = start(**settings)
    engine.load("tiny")
    asked = [request(str(number), prompt, 8 + number % 17) for number, prompt in enumerate(prompts(32, 90))]
    got = answers(engine, asked)
    for each, answer in zip(asked, got):
        assert list(answer.token_ids) == greedy(each.prompt, each.params.max_tokens), each.id
    stats = engine.stats()["tiny"]
    assert stats.rows > 2 * stats.forwards, "requests shared forwards"
    assert (stats.preemptions > 0) == ("num_pages" in settings)


def test_a_shared_prefix_is_computed_once_and_changes_nothing(start: Start, greedy: Greedy) -> None:
    engine = start()
    prefix = prompts(1, 1, seed=5)[0] * 300
    asked = [request(str(n), (*prefix, *tail), 12) for n, tail in enumerate(prompts(32, 20, seed=6))]
    (first,) = answers(engine, asked[:1])
    assert first.cached_tokens == 0
    got = [first, *answers(engine, asked[1:])]
    for each, answer in zip(asked, got):
        assert list(answer.token_ids) == greedy(each.prompt, 12), each.id
    assert all(answer.cached_tokens >= 288 for answer in got[1:])
    stats = engine.stats()["tiny"]
    assert stats.cached_tokens == sum(answer.cached_tokens for answer in got)
    assert stats.pages_free + stats.pages_cached + stats.pages_used == 256
    assert stats.pages_used == 0


def test_a_seeded_text_does_not_depend_on_its_company(start: Start) -> None:
    engine = start()
    mine = {"temperature": 0.9, "top_p": 0.9, "top_k": 40, "seed": 11, "repetition_penalty": 1.2}
    prompt = prompts(1, 30, seed=3)[0]
    (alone,) = answers(engine, [request("alone", prompt, 24, **mine)])
    crowd = [
        request(str(number), each, 20, temperature=1.3, seed=number)
        for number, each in enumerate(prompts(9, 60, seed=4))
    ]
    together = answers(engine, [*crowd[:4], request("together", prompt, 24, **mine), *crowd[4:]])[4]
    assert together.token_ids == alone.token_ids
    (other,) = answers(engine, [request("other", prompt, 24, **(mine | {"seed": 12}))])
    assert other.token_ids != alone.token_ids
