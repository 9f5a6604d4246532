"""What structure costs, what a common beginning saves and what guesses bring, as lines for `bench.llm`."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Sequence

from runtime.llm.api import ChatRequest, CompleteRequest, Grammar, Message, SamplingParams
from runtime.llm.engine import Engine

Clock = Callable[[], float]

_TEXT = {"type": "string", "minLength": 30, "maxLength": 300}
# Long enough that no answer ends before its number of tokens.
_PROPERTIES = {
    "title": {"type": "string", "maxLength": 20},
    "kind": {"enum": ["sea", "land", "air"]},
    "parts": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 4},
    **{f"text_{number}": _TEXT for number in range(20)},
}
_SCHEMA = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}

_TEXT_TO_REWRITE = (
    "The treadle of a loom is a pedal. When the weaver steps on it, it lifts one half of the threads and"
    " lowers the other half, and the shuttle flies through the gap between them. Then the other pedal is"
    " pressed, the threads change places, and the shuttle flies back. A good weaver does this forty times a"
    " minute and hardly looks at the pedals."
)
_REPETITIVE = (
    "Repeat this text word for word: ",
    "Write this text again and put Loom in place of loom: ",
    "Copy this text and number its sentences: ",
    "Correct the spelling of this text and change nothing else: ",
)
_FREE = (
    "Write a poem about the sea.",
    "What would you see on a walk through a forest?",
    "Tell a story about a lost key.",
    "How does one bake bread?",
)


def structure(engine: Engine, clock: Clock, *, count: int, tokens: int, rounds: int) -> str:
    """The same requests free and under a JSON schema, in turn."""
    forms: dict[str, Callable[[int], SamplingParams]] = {
        "free": lambda seed: SamplingParams(max_tokens=tokens, seed=seed, ignore_eos=True),
        "JSON": lambda seed: SamplingParams(
            max_tokens=tokens, seed=seed, grammar=Grammar("json_schema", json.dumps(_SCHEMA))
        ),
    }
    speeds: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(rounds + 1):
        for name, params in forms.items():
            prompts = _prompts(count, 0, 16, seed=turn)
            began = clock()
            generated = _answer(engine, prompts, [params(seed) for seed in range(count)])
            if turn > 0:
                # the first turn compiles
                speeds[name].append(generated / (clock() - began))
    free, bound = (statistics.median(each) for each in speeds.values())
    more = free / bound - 1
    return f"{count} at once under a JSON schema: {bound:.1f} tokens/s, free {free:.1f}: {more:+.1%} time"


def shared_prefix(engine: Engine, forgetful: Engine, clock: Clock, *, count: int, shared: int) -> str:
    """The same prompts with a common beginning, by an engine with a prefix cache and by one without."""
    params = [SamplingParams(max_tokens=4, temperature=0.0, ignore_eos=True)] * count
    prompts = _prompts(count, shared, 16, seed=shared)
    times = []
    for each in (engine, forgetful):
        _answer(each, _prompts(1, 0, 16, seed=0), params[:1])
        began = clock()
        _answer(each, prompts, params)
        times.append(clock() - began)
    using, without = times
    return (
        f"{count} prompts of {shared + 16} tokens, {shared} of them common: {using:.1f} s,"
        f" without the prefix cache {without:.1f} s: {without / using:.1f}x"
    )


def speculation(plain: Engine, guessing: Engine, clock: Clock, *, count: int, tokens: int) -> list[str]:
    """The same chats without guesses and with them: rewriting a text, and answers that repeat nothing."""
    lines = []
    for name, questions in (
        ("rewriting", [each + _TEXT_TO_REWRITE for each in _REPETITIVE]),
        ("free", _FREE),
    ):
        wanted = [questions[number % len(questions)] for number in range(count)]
        times, answers = [], []
        for engine in (plain, guessing):
            _chat(engine, wanted[:1], 2)
            before = engine.stats()["bench"]
            began = clock()
            answers.append(_chat(engine, wanted, tokens))
            times.append(clock() - began)
        after = guessing.stats()["bench"]
        accepted = after.guesses_accepted - before.guesses_accepted
        proposed = after.guesses_proposed - before.guesses_proposed
        generated = after.generated_tokens - before.generated_tokens
        equal = sum(one == other for one, other in zip(*answers))
        lines.append(
            f"{count} at once, {name}: {generated / max(1, generated - accepted):.2f} tokens a forward,"
            f" {accepted} of {proposed} guesses right: {times[0] / times[1]:.2f}x the speed without guesses;"
            f" {equal} of {count} texts equal"
        )
    return lines


def _chat(engine: Engine, questions: Sequence[str], tokens: int) -> list[tuple[int, ...]]:
    stamp = time.monotonic_ns()
    params = SamplingParams(max_tokens=tokens, temperature=0.0)
    handles = [
        engine.submit(ChatRequest(f"{stamp}.{number}", "bench", (Message("user", question),), params))
        for number, question in enumerate(questions)
    ]
    return [handle.wait().token_ids for handle in handles]


def _prompts(count: int, common: int, own: int, seed: int) -> list[list[int]]:
    choose = random.Random(seed)
    beginning = [choose.randint(100, 20_000) for _ in range(common)]
    return [beginning + [choose.randint(100, 20_000) for _ in range(own)] for _ in range(count)]


def _answer(engine: Engine, prompts: Sequence[Sequence[int]], params: Sequence[SamplingParams]) -> int:
    """How many tokens came."""
    stamp = time.monotonic_ns()
    handles = [
        engine.submit(CompleteRequest(f"{stamp}.{number}", "bench", tuple(prompt), each))
        for number, (prompt, each) in enumerate(zip(prompts, params))
    ]
    return sum(len(handle.wait().token_ids) for handle in handles)
