"""One request's answer as it grows: tokens become text, calls of tools and log probabilities, until it ends.

It knows no batch and no scheduling.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from runtime.llm.api import FinishReason, Logprobs, Scored, ToolCall
from runtime.llm.dllm.blocks import Block
from runtime.llm.reasoning import Parted, ReasoningStream
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
    reasoning: str = ""


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
    reasoning: ReasoningStream | None = None
    tokens: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[Logprobs] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    num_thought: int = 0
    prompt_logprobs: dict[int, Logprobs] = field(default_factory=dict)
    matched_stop: str | int | None = None

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
        self.matched_stop = self.stream.matched
        if is_end and token in self.choice.params.stop_token_ids:
            self.matched_stop = token
        parted = self._think(piece, is_last=finish is not None)
        found = self._part(parted.content, is_last=finish is not None)
        self.texts.append(found.text)
        self.thoughts.append(parted.reasoning)
        self.tool_calls.extend(found.calls)
        logprobs = None if is_end else self._take_logprobs(token)
        return Step(found.text, found.calls, logprobs, finish, parted.reasoning)

    def note_prompt(self, position: int, token: int, scores: Scores) -> None:
        """How likely the prompt's token at this position was after those before it."""
        self.prompt_logprobs[position] = self._logprobs(token, scores)

    def _think(self, piece: str, is_last: bool) -> Parted:
        if is_last:
            piece += self.stream.finish()
        if self.reasoning is None:
            return Parted("", piece)
        was_inside = self.reasoning.is_inside
        parted = self.reasoning.push(piece)
        self.num_thought += was_inside or self.reasoning.is_inside
        if is_last:
            rest = self.reasoning.finish()
            parted = Parted(parted.reasoning + rest.reasoning, parted.content + rest.content)
        if self.choice.constraint is not None and self.reasoning.is_over:
            self.choice.constraint.active = True
        return parted

    def _part(self, piece: str, is_last: bool) -> Found:
        """The text and the calls that a piece of the answer completes."""
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
        logprobs = self._logprobs(token, self.scores.popleft())
        self.logprobs.append(logprobs)
        return logprobs

    def _logprobs(self, token: int, scores: Scores) -> Logprobs:
        top = tuple(self._scored(each, value) for each, value in scores.top)
        return Logprobs(self._scored(token, scores.chosen), top)

    def _scored(self, token: int, logprob: float) -> Scored:
        return Scored(token, self.vocabulary.bytes_of(token), logprob)
