"""What a model thinks aloud before it answers: how each style of models marks it, parted from the answer.

It knows text only: no tokens and no templates' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runtime.platform.registry import Registry


@dataclass(frozen=True, slots=True)
class ReasoningStyle:
    """Thoughts stand between `open`, which the prompt may have written already, and `close`."""

    open: str
    close: str


styles: Registry[ReasoningStyle] = Registry("style of reasoning")
styles.register("think")(ReasoningStyle("<think>", "</think>"))
styles.register("mistral")(ReasoningStyle("[THINK]", "[/THINK]"))
styles.register("seed")(ReasoningStyle("<seed:think>", "</seed:think>"))


def style_of(template: str) -> ReasoningStyle | None:
    """What a chat template knows of; None for models that do not think aloud."""
    known = (styles[name] for name in styles)
    return next((style for style in known if style.close in template), None)


def is_open(style: ReasoningStyle, text: str) -> bool:
    """Whether what stands before an answer ends inside of thoughts."""
    return text.rfind(style.open) > text.rfind(style.close)


@dataclass(frozen=True, slots=True)
class Parted:
    """What may be shown by now."""

    reasoning: str
    content: str


class ReasoningStream:
    """Parts an answer into thoughts and content, without the blanks around the markers between them.

    A beginning of a marker is held back until it is known for one. Thoughts stand at the beginning only.
    """

    def __init__(self, style: ReasoningStyle, *, begins_inside: bool) -> None:
        self._style = style
        self._place: Literal["before", "inside", "after"] = "inside" if begins_inside else "before"
        self._held = ""
        self._skips_blanks = begins_inside

    @property
    def is_inside(self) -> bool:
        return self._place == "inside"

    @property
    def is_over(self) -> bool:
        """The content has begun."""
        return self._place == "after"

    def push(self, text: str) -> Parted:
        self._held += text
        if self._place == "before":
            self._look_for_open()
        reasoning = self._take_thoughts() if self._place == "inside" else ""
        content = self._take(len(self._held)) if self._place == "after" else ""
        return Parted(reasoning, content)

    def finish(self) -> Parted:
        """The answer has ended: what is held is no marker."""
        if self._place == "inside":
            return Parted(self._take(len(self._held)).rstrip(), "")
        return Parted("", self._take(len(self._held)))

    def _look_for_open(self) -> None:
        start = self._held.lstrip()
        if start.startswith(self._style.open):
            self._place, self._held = "inside", start[len(self._style.open) :]
            self._skips_blanks = True
        elif not self._style.open.startswith(start):
            self._place = "after"

    def _take_thoughts(self) -> str:
        at = self._held.find(self._style.close)
        if at < 0:
            return self._take(len(self._held) - self._uncertain())
        thoughts = self._take(at).rstrip()
        self._held = self._held[len(self._style.close) :]
        self._place, self._skips_blanks = "after", True
        return thoughts

    def _take(self, count: int) -> str:
        piece, self._held = self._held[:count], self._held[count:]
        if self._skips_blanks:
            piece = piece.lstrip()
            self._skips_blanks = not piece
        return piece

    def _uncertain(self) -> int:
        """How many characters at the end may be blanks before the marker, or its beginning."""
        close = self._style.close
        longest = min(len(close) - 1, len(self._held))
        mark = next((n for n in range(longest, 0, -1) if close.startswith(self._held[-n:])), 0)
        known = self._held[: len(self._held) - mark]
        return len(self._held) - len(known.rstrip())
