"""The compatibility lane: one loaded encoder-decoder model and its live requests.

What waits when a step begins starts together, is encoded as one batch, and is written in step; such groups
take turns. No pages, no prefixes. Touched by the engine's thread only, as `Lane` is.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from runtime.llm import sample
from runtime.llm.answer import Answer, Step
from runtime.llm.api import ChatRequest, CompleteRequest, Completion, LanguageStats, Request, Token
from runtime.llm.compat_intake import CompatIntake, CompatPrepared
from runtime.llm.encoder_decoder import Decoding, EncoderDecoder
from runtime.llm.lane import Deliver, is_out_of_memory
from runtime.llm.live import LiveRequests
from runtime.llm.sample import Place
from runtime.llm.text import Codec
from runtime.platform.errors import OutOfMemory, RuntimeFault
from runtime.platform.handle import Done, Event, Started

log = logging.getLogger(__name__)

# Requests come a moment apart; those that start together share every forward from then on.
_STEPS_BETWEEN_STARTS = 4


@dataclass(eq=False, slots=True)
class Writing:
    """A live request; `history` is the answer behind the token that starts it, `limit` its longest."""

    request: ChatRequest | CompleteRequest
    prepared: CompatPrepared
    answer: Answer
    history: list[int]
    limit: int
    deliver: Deliver

    @property
    def shape(self) -> tuple[object, ...]:
        """Requests that can be encoded together have the same."""
        return tuple((name, tuple(each.shape)) for name, each in sorted(self.prepared.inputs.items()))


@dataclass(eq=False, slots=True)
class Group:
    """Requests whose answers are equally long; `decoding` is None until they are computed, or again."""

    rows: list[Writing]
    decoding: Decoding | None = None

    def begin(self, model: EncoderDecoder) -> Decoding:
        prompts = [row.prepared.tokens for row in self.rows]
        names = self.rows[0].prepared.inputs
        media = {name: torch.cat([row.prepared.inputs[name] for row in self.rows]) for name in names}
        return Decoding(model, prompts, media)

    def keep(self, wanted: Callable[[Writing], bool]) -> None:
        left = [at for at, row in enumerate(self.rows) if wanted(row)]
        if len(left) < len(self.rows):
            self.rows = [self.rows[at] for at in left]
            if self.decoding is not None and self.rows:
                self.decoding.keep(left)


@dataclass(slots=True)
class _Counters:
    forwards: int = 0
    rows: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0


@dataclass(eq=False, slots=True)
class CompatLane(LiveRequests[Writing]):
    """At most `max_rows` requests are written at a time."""

    model: EncoderDecoder
    codec: Codec
    max_rows: int
    on_forward: Callable[[int], None] | None
    _intake: CompatIntake = field(init=False)
    _live: dict[str, Writing] = field(default_factory=dict)
    _waiting: deque[Writing] = field(default_factory=deque)
    _groups: deque[Group] = field(default_factory=deque)
    _counters: _Counters = field(default_factory=_Counters)
    _steps_since_start: int = 0

    def __post_init__(self) -> None:
        self._intake = CompatIntake(self.model, self.codec)

    def prepare(self, request: Request) -> CompatPrepared:
        """What may take long before a request can start. Called beside the engine's thread."""
        return self._intake.prepare(request)

    def add(self, request: Request, prepared: CompatPrepared, deliver: Deliver) -> None:
        if prepared.tokenized is not None:
            deliver(Done(request.id, prepared.tokenized))
            return
        assert isinstance(request, ChatRequest | CompleteRequest), request
        limit = min(request.params.max_tokens, self.model.context_length - 1)
        answer = self._intake.answer(request, prepared)
        row = Writing(request, prepared, answer, [self.model.start_id], limit, deliver)
        self._live[request.id] = row
        self._waiting.append(row)

    def stats(self) -> LanguageStats:
        counters, waiting = self._counters, len(self._waiting)
        return LanguageStats(
            forwards=counters.forwards,
            rows=counters.rows,
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=0,
            generated_tokens=counters.generated_tokens,
            preemptions=0,
            running=len(self._live) - waiting,
            waiting=waiting,
            pages_free=0,
            pages_cached=0,
            pages_used=0,
            weight_bytes=self.model.weight_bytes,
        )

    # -- a step ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        group = self._next()
        if group is None:
            assert not self._live, "requests are there and none is written"
            return
        try:
            tokens = self._sample(group, self._forward(group))
        except Exception as error:
            self._give_way(group, error)
            return
        for row, token in zip(group.rows, tokens, strict=True):
            self._deliver(row, token)
        group.keep(self._is_live)
        if group.rows:
            self._groups.append(group)

    def _next(self) -> Group | None:
        """New requests if it is time for them, or else whose turn it is."""
        for group in self._groups:
            group.keep(self._is_live)
        self._groups = deque(group for group in self._groups if group.rows)
        self._steps_since_start += 1
        may_start = not self._groups or self._steps_since_start >= _STEPS_BETWEEN_STARTS
        room = self.max_rows - sum(len(group.rows) for group in self._groups)
        if self._waiting and room > 0 and may_start:
            self._steps_since_start = 0
            return self._gather(room)
        return self._groups.popleft() if self._groups else None

    def _gather(self, room: int) -> Group:
        shape = self._waiting[0].shape
        rows = [row for row in self._waiting if row.shape == shape][:room]
        self._waiting = deque(row for row in self._waiting if row not in rows)
        for row in rows:
            self._counters.prompt_tokens += len(row.prepared.tokens)
            row.deliver(Started(row.request.id))
        return Group(rows)

    def _forward(self, group: Group) -> torch.Tensor:
        group.decoding = group.decoding or group.begin(self.model)
        logits = group.decoding.forward([row.history for row in group.rows])
        self._counters.forwards += 1
        self._counters.rows += len(group.rows)
        if self.on_forward is not None:
            self.on_forward(len(group.rows))
        return logits

    @torch.inference_mode()
    def _sample(self, group: Group, logits: torch.Tensor) -> list[int]:
        # logits: [R, V]
        own = logits.clone()
        for row, scores in zip(group.rows, logits, strict=True):
            # A grammar says by itself how an answer begins and ends.
            if row.answer.choice.constraint is None:
                self.model.rule(row.history, scores, is_last=len(row.history) == row.limit)
        chosen = sample.choose(logits, [Place(row.answer.choice, row.history) for row in group.rows])
        for at, row in enumerate(group.rows):
            row.answer.choice.numbers.use(1)
            count = row.request.params.logprobs
            if count is not None:
                row.answer.scores.extend(sample.scores(own[at : at + 1], [chosen.tokens[at]], count))
        return chosen.tokens

    def _deliver(self, row: Writing, token: int) -> None:
        """A decoder that chokes on one request's tokens, or a dead listener, costs nobody else theirs."""
        try:
            row.history.append(token)
            self._counters.generated_tokens += 1
            is_end = token in row.answer.choice.end_ids
            is_full = len(row.history) > row.limit
            step = row.answer.push(token, "stop" if is_end else "length" if is_full else None)
            row.deliver(Token(row.request.id, token, step.text, step.logprobs, step.tool_calls))
            if step.finish is not None:
                self._end(row.request.id, Done(row.request.id, self._completion(row, step)))
        except Exception as error:
            log.exception("delivering to request %s failed", row.request.id)
            self.fail(row.request.id, RuntimeFault(f"the answer cannot be delivered: {error}"))

    def _completion(self, row: Writing, step: Step) -> Completion:
        assert step.finish is not None
        prepared, processor = row.prepared, self.model.processor
        tokens = tuple(row.answer.tokens)
        return Completion(
            text=row.answer.text,
            token_ids=tokens,
            finish_reason=step.finish,
            prompt_tokens=len(prepared.tokens),
            cached_tokens=0,
            logprobs=tuple(row.answer.logprobs),
            prompt_ids=tuple(prepared.tokens),
            matched_stop=row.answer.matched_stop,
            extended=None if processor is None else processor.extended(prepared.text, tokens, prepared.media),
        )

    # -- the end of a request --------------------------------------------------------------------------------

    def _is_live(self, row: Writing) -> bool:
        return self._live.get(row.request.id) is row

    def _end(self, request_id: str, event: Event) -> None:
        row = self._live.pop(request_id, None)
        if row is None:
            return
        if row in self._waiting:
            self._waiting.remove(row)
        if not self._live:
            self._groups.clear()
        row.deliver(event)

    def _give_way(self, group: Group, error: Exception) -> None:
        """What failed left a cache that cannot be trusted, so whoever goes on is computed anew."""
        if is_out_of_memory(error) and len(group.rows) > 1:
            log.warning("a forward of %d rows ran out of memory: %s", len(group.rows), error)
            middle = len(group.rows) // 2
            self.max_rows = max(1, self.max_rows // 2)
            self._groups.extend([Group(group.rows[:middle]), Group(group.rows[middle:])])
            return
        if is_out_of_memory(error):
            size = len(group.rows[0].prepared.tokens)
            error = OutOfMemory(f"a request of {size} tokens does not fit in memory beside the model")
        elif not isinstance(error, RuntimeFault):
            log.exception("a step of %d rows failed", len(group.rows))
            error = RuntimeFault(f"a step failed: {error}")
        self._fail_rows(group.rows, error)

    def _fail_rows(self, rows: Sequence[Writing], error: Exception) -> None:
        for row in rows:
            self.fail(row.request.id, error)
