"""One request's answer as it grows: tokens become text, calls of tools and log probabilities, until it ends.

It knows no batch and no scheduling.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from runtime.llm.api import FinishReason, Logprobs, Scored, ToolCall
from runtime.llm.dllm.blocks import Block
from runtime.llm.sample import Choice, Scores
from runtime.llm.speculation import Ngrams
from runtime.llm.text import TextStream
from runtime.llm.tool_calls import Found, ToolStream
from runtime.llm.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Step:
    """What one token brought, and why the answer ends with it, if it does."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    logprobs: Logprobs | None
    finish: FinishReason | None


@dataclass(eq=False, slots=True)
class Answer:
    """`scores` are those of tokens that were sampled and are pushed next. The next tokens are guessed from
    `ngrams`; a `block` is being written by a model that writes in blocks.
    """

    choice: Choice
    stream: TextStream
    tools: ToolStream | None
    vocabulary: Vocabulary
    scores: deque[Scores] = field(default_factory=deque)
    ngrams: Ngrams = field(default_factory=Ngrams)
    block: Block | None = None
    tokens: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[Logprobs] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def push(self, token: int, finish: FinishReason | None) -> Step:
        """`finish` is what the token's place in the sequence says; "stop" means an end token."""
        is_end = finish == "stop"
        self.tokens.append(token)
        constraint = self.choice.constraint
        if constraint is not None:
            constraint.accept(token)
        piece = "" if is_end else self.stream.push(token)
        if self.stream.stopped or (constraint is not None and constraint.is_complete):
            finish = "stop"
        found = self._part(piece, is_last=finish is not None)
        self.texts.append(found.text)
        self.tool_calls.extend(found.calls)
        logprobs = None if is_end else self._take_logprobs(token)
        return Step(found.text, found.calls, logprobs, finish)

    def _part(self, piece: str, is_last: bool) -> Found:
        """The text and the calls that a piece of the answer completes."""
        if is_last:
            piece += self.stream.finish()
        if self.tools is None:
            return Found(piece)
        found = self.tools.push(piece)
        if is_last:
            rest = self.tools.finish()
            found = Found(found.text + rest.text, found.calls + rest.calls)
        return found

    def _take_logprobs(self, token: int) -> Logprobs | None:
        if not self.scores:
            return None
        scores = self.scores.popleft()
        chosen = self._scored(token, scores.chosen)
        logprobs = Logprobs(chosen, tuple(self._scored(each, value) for each, value in scores.top))
        self.logprobs.append(logprobs)
        return logprobs

    def _scored(self, token: int, logprob: float) -> Scored:
        return Scored(token, self.vocabulary.bytes_of(token), logprob)
