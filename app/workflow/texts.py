"""Texts that change when a workflow is queued: random choices in prompts, and tokens in file names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ILLEGAL = re.compile(r'[/?<>\\:*|"\x00-\x1f\x7f]')
_TOKEN = re.compile(r"%([^%]+)%")
_DATE_PARTS = re.compile(r"yyyy|yy|MM|M|dd|d|hh|h|mm|m|ss|s")


def choose(text: str, rng: random.Random) -> str:
    """Drop comments and pick one of each `{a|b|{c|d}}`; a backslash keeps a brace or a bar as it is."""
    result, _ = _choices(_COMMENT.sub("", text), 0, rng, top=True)
    return result


def _choices(text: str, at: int, rng: random.Random, top: bool) -> tuple[str, int]:
    options: list[str] = []
    current = ""
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text) and text[at + 1] in "{}|":
            current += text[at + 1]
            at += 2
        elif char == "{":
            inner, at = _choices(text, at + 1, rng, top=False)
            current += inner
        elif char == "}" and not top:
            return rng.choice([*options, current]), at + 1
        elif char == "|" and not top:
            options.append(current)
            current, at = "", at + 1
        else:
            current += char
            at += 1
    return (current if top else rng.choice([*options, current])), at


def fill_tokens(text: str, widget_of: Callable[[str, str], str | None], now: datetime) -> str:
    """`%Node.widget%` and `%date:FORMAT%`; every other token stays for the server."""

    def fill(match: re.Match[str]) -> str:
        token = match[1]
        if token.startswith("date:"):
            return _DATE_PARTS.sub(lambda part: _date_part(part[0], now), token[5:])
        name, dot, widget = token.rpartition(".")
        value = widget_of(name, widget) if dot else None
        return match[0] if value is None else _ILLEGAL.sub("_", value)

    return _TOKEN.sub(fill, text)


def as_text(value: Any) -> str:
    """A value as a browser would write it: whole numbers without a point, nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return ",".join(as_text(item) for item in value)
    return str(value)


def _date_part(part: str, now: datetime) -> str:
    number = {"y": now.year, "M": now.month, "d": now.day, "h": now.hour, "m": now.minute, "s": now.second}
    if part.startswith("y"):
        return f"{now.year:04d}"[-len(part) :]
    return f"{number[part[0]]:0{len(part)}d}"
