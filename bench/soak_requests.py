"""Random requests for `bench.soak`: what callers ask of a server, wrong questions among them."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

PICTURES = Path(__file__).parents[1] / "examples" / "pictures"
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1, "maxItems": 5}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town",
        "parameters": {"type": "object", "properties": {"town": {"enum": ["Ulm", "Oslo"]}}},
    },
}
CHAT, COMPLETION, EMBEDDING = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """`statuses` are those that a right answer may have. With `leaves_after` its caller hangs up then, in
    seconds.
    """

    kind: str
    path: str
    body: Json | bytes
    statuses: tuple[int, ...] = (200,)
    leaves_after: float | None = None


def draw(choose: random.Random, models: tuple[str, str]) -> Question:
    """Of the two models the first is quick and the second sees."""
    kinds: dict[Callable[[random.Random, tuple[str, str]], Question], int] = {
        _chat: 6, _completion: 4, _picture: 2, _embedding: 2, _structure: 3, _tools: 2, _wrong: 4,
    }  # fmt: skip
    question = choose.choices(list(kinds), list(kinds.values()))[0](choose, models)
    if question.statuses != (200,) or choose.random() > 0.25:
        return question
    kind, leaves_after = f"left {question.kind}", choose.choice([0.0, 0.05, 0.3, 1.0, 3.0])
    return Question(kind, question.path, question.body, (200,), leaves_after)


def _sampling(choose: random.Random) -> Json:
    body: Json = {"max_tokens": choose.randint(1, 80), "temperature": choose.choice([0.0, 0.8, 1.5])}
    return body | choose.choice(
        [{}, {"seed": 3}, {"top_p": 0.7, "top_k": 20}, {"stop": ["e", "\n\n"]}, {"frequency_penalty": 1.0}]
    )


def _words(choose: random.Random) -> str:
    """Often a beginning that others have too."""
    common = choose.choice(["", "Once upon a time there was a weaver. ", "You shall answer at once. " * 12])
    return common + " ".join(
        choose.choices(["loom", "thread", "sea", "who", "7", "ß", "猫"], k=choose.randint(1, 40))
    )


def _chat(choose: random.Random, models: tuple[str, str]) -> Question:
    messages = [{"role": "user", "content": _words(choose)}]
    for _ in range(choose.randint(0, 2)):
        messages += [{"role": "assistant", "content": "Well."}, {"role": "user", "content": _words(choose)}]
    body = {"model": models[choose.random() < 0.1], "messages": messages, **_sampling(choose)}
    more: Json = choose.choice([{}, {"n": 3}, {"stream": True}, {"logprobs": True, "top_logprobs": 2}])
    return Question("chat", CHAT, body | more)


def _completion(choose: random.Random, models: tuple[str, str]) -> Question:
    prompt = choose.choice([_words(choose), [_words(choose), _words(choose)], [5, 6, 7]])
    more: Json = choose.choice([{}, {"stream": True}, {"echo": True, "logprobs": 1}, {"n": 2}])
    return Question(
        "completion", COMPLETION, {"model": models[0], "prompt": prompt, **_sampling(choose), **more}
    )


def _picture(choose: random.Random, models: tuple[str, str]) -> Question:
    parts: list[Json] = [
        {"type": "image_url", "image_url": {"url": picture(choose.randrange(64))}}
        for _ in range(choose.choice([1, 1, 1, 3]))
    ]
    parts.append({"type": "text", "text": choose.choice(["What is this?", "Describe the picture."])})
    body = {"model": models[1], "messages": [{"role": "user", "content": parts}], "max_tokens": 8}
    return Question("picture", CHAT, body | {"stream": choose.random() < 0.5})


def _embedding(choose: random.Random, models: tuple[str, str]) -> Question:
    return Question("embedding", EMBEDDING, {"model": models[0], "input": [_words(choose), _words(choose)]})


def _structure(choose: random.Random, models: tuple[str, str]) -> Question:
    form: Json = choose.choice(
        [
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": COLOURS}}},
            {"structured_outputs": {"json": PERSON}},
            {"structured_outputs": {"regex": "[a-f]{4,9}"}},
            {"structured_outputs": {"choice": ["yes", "no", "perhaps"]}},
        ]
    )
    messages = [{"role": "user", "content": _words(choose)}]
    return Question(
        "structure", CHAT, {"model": models[0], "messages": messages, **_sampling(choose), **form}
    )


def _tools(choose: random.Random, models: tuple[str, str]) -> Question:
    body = {"model": models[0], "messages": [{"role": "user", "content": _words(choose)}], "tools": [TOOL]}
    return Question("tools", CHAT, body | {"tool_choice": "required", "max_tokens": 60})


def _wrong(choose: random.Random, models: tuple[str, str]) -> Question:
    right = {"model": models[0], "messages": [{"role": "user", "content": "Hm?"}]}
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    body: Json | bytes = choose.choice(
        [
            b"{no JSON",
            {},
            right | {"model": "nobody"},
            right | {"max_tokens": -1},
            right | {"temperature": -3},
            right | {"strange": 1},
            right | {"structured_outputs": {"regex": "(open"}},
            right | {"structured_outputs": {"json": {"type": "object", "dependentSchemas": {"a": {}}}}},
            right | {"messages": [{"role": "user", "content": "too long " * 4000}]},
            {"model": models[1], "messages": [{"role": "user", "content": [broken]}]},
            {"model": models[0], "messages": [{"role": "user", "content": [broken]}]},
        ]
    )
    return Question("wrong", CHAT, body, (400, 404, 413, 422))


@cache
def picture(number: int) -> str:
    """One of 64: the eight example pictures, each moved by some pixels."""
    files = sorted(PICTURES.glob("*.png"))
    with Image.open(files[number % len(files)]) as opened:
        moved = opened.convert("RGB").rotate(3 * (number // len(files)))
    target = io.BytesIO()
    moved.save(target, "PNG")
    return f"data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}"
