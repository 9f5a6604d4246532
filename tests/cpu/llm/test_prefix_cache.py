"""An engine without its prefix cache computes everything, and answers the same."""

from __future__ import annotations

from collections.abc import Callable

from runtime.llm.api import CompleteRequest, Completion, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.handle import Handle

PROMPT = tuple(range(10, 90))


def answer(engine: Engine, name: str) -> Handle[Completion]:
    params = SamplingParams(max_tokens=6, temperature=0.0)
    return engine.submit(CompleteRequest(name, "tiny", PROMPT, params))


def test_without_the_prefix_cache_every_prompt_is_computed_whole(start: Callable[..., Engine]) -> None:
    keeping, forgetful = start(), start(prefix_cache=False)
    first, again = (answer(keeping, name).wait() for name in "ab")
    assert again.cached_tokens > 0
    for each in (answer(forgetful, name).wait() for name in "ab"):
        assert each.token_ids == first.token_ids
        assert each.cached_tokens == 0


def test_without_it_equal_prompts_run_beside_one_another(start: Callable[..., Engine]) -> None:
    forgetful = start(prefix_cache=False)
    answers = [handle.wait() for handle in [answer(forgetful, f"{number}") for number in range(6)]]
    assert len({each.token_ids for each in answers}) == 1
    assert forgetful.stats()["tiny"].cached_tokens == 0
    assert forgetful.stats()["tiny"].pages_used == 0
