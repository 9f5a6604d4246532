"""What a program says and asks for, and what answers it. Data only: it knows no engine and no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from runtime.llm.api import Grammar, SamplingParams

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Picture:
    """`content` is a file's, in any format that Pillow reads."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """What the model is to say, under a name by which the program reads it."""

    name: str
    params: SamplingParams


@dataclass(frozen=True, slots=True)
class Parts:
    """Texts, pictures and gaps in their order; `+` joins them with one another and with plain texts."""

    parts: tuple[str | Picture | Gap, ...]

    def __add__(self, other: Parts | str) -> Parts:
        return Parts(self.parts + ((other,) if isinstance(other, str) else other.parts))

    def __radd__(self, other: str) -> Parts:
        return Parts((other, *self.parts))


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    parts: tuple[str | Picture | Gap, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`cached_tokens` of the prompt had been computed before, for this program or another."""

    text: str
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class Backend(Protocol):
    def generate(self, turns: Sequence[Turn], gap: Gap, hear: Callable[[str], None]) -> Answer:
        """Blocks. No turn has gaps; when the last one is the assistant's the answer goes on with it. `hear`
        is told each piece of text; what it raises ends the request.
        """


def gen(
    name: str,
    *,
    max_tokens: int = 256,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int | None = None,
    stop: str | Sequence[str] = (),
    regex: str | None = None,
    json_schema: Mapping[str, Any] | None = None,
) -> Parts:
    """The model's words, greedily unless a temperature is given; `state[name]` reads them."""
    if regex is not None and json_schema is not None:
        raise ValueError(f"{name} takes a regex or a JSON schema, not both")
    schema = None if json_schema is None else Grammar("json_schema", json.dumps(json_schema))
    params = SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        grammar=schema if regex is None else Grammar("regex", regex),
    )
    return Parts((Gap(name, params),))


def select(name: str, choices: Sequence[str]) -> Parts:
    """One of the choices: token by token the likeliest that still leads to one."""
    if not choices or not all(choices):
        raise ValueError(f"{name} needs choices, none of them empty")
    longest = max(len(each.encode()) for each in choices)
    grammar = Grammar("choice", json.dumps(list(choices)))
    return Parts((Gap(name, SamplingParams(max_tokens=longest + 1, temperature=0.0, grammar=grammar)),))


def image(source: str | Path | bytes) -> Parts:
    """A file's path, or its content."""
    return Parts((Picture(source if isinstance(source, bytes) else Path(source).read_bytes()),))


def system(content: Parts | str) -> Turn:
    return _turn("system", content, Gap)


def user(content: Parts | str) -> Turn:
    return _turn("user", content, Gap)


def assistant(content: Parts | str) -> Turn:
    return _turn("assistant", content, Picture)


def _turn(role: Role, content: Parts | str, misplaced: type) -> Turn:
    parts = (content,) if isinstance(content, str) else content.parts
    if any(isinstance(part, misplaced) for part in parts):
        raise ValueError("the user shows pictures and the assistant fills gaps, not the other way about")
    return Turn(role, parts)
