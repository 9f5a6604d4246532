"""One loaded model and its live requests: schedule, build, forward, sample, commit, deliver.

Touched by the engine's thread only. A fault in a step ends the requests of that step, never the lane.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from runtime.llm import custom_runner, sample
from runtime.llm.adapters import Adapters
from runtime.llm.answer import Answer
from runtime.llm.api import (
    Completion,
    Embedding,
    FinishReason,
    LanguageStats,
    Request,
    Token,
    TokenizeRequest,
)
from runtime.llm.batch import Batch, build
from runtime.llm.dllm.writer import BlockWriter
from runtime.llm.features import FeatureStore
from runtime.llm.intake import HiddenStates, Intake, Prepared
from runtime.llm.live import LiveRequests
from runtime.llm.model import LanguageModel
from runtime.llm.pages import Pages
from runtime.llm.runner import Output, Runner
from runtime.llm.scheduler import Outcome, Scheduler
from runtime.llm.sequence import Row, TokenSequence
from runtime.llm.state_scheduler import StateScheduler
from runtime.llm.state_slots import StateSlots
from runtime.llm.text import Codec
from runtime.llm.writing import TokenWriter
from runtime.platform.errors import OutOfMemory, RuntimeFault
from runtime.platform.handle import Done, Event, Started

log = logging.getLogger(__name__)

Deliver = Callable[[Event], None]
Writer = TokenWriter | BlockWriter


@dataclass(eq=False, slots=True)
class Live:
    request: Request
    sequence: TokenSequence
    work: Answer | HiddenStates
    deliver: Deliver
    started: bool = False


@dataclass(slots=True)
class Counters:
    forwards: int = 0
    rows: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0


class Lane(LiveRequests[Live]):
    def __init__(
        self,
        model: LanguageModel,
        codec: Codec,
        *,
        num_pages: int,
        page_size: int,
        max_batch_tokens: int,
        max_rows: int,
        max_feature_bytes: int,
        max_adapter_bytes: int = 0,
        adapters: Callable[[], Mapping[str, Path]] = dict,
        writer: Writer,
        num_kept_states: int = 0,
        prefix_cache: bool = True,
        runner: type[Runner] = Runner,
        on_forward: Callable[[int], None] | None,
    ) -> None:
        self.model = model
        slots = StateSlots(max_rows, num_kept_states) if model.states else None
        self._num_state_slots = 0 if slots is None else slots.num_slots
        pages = Pages(num_pages, page_size, reuses=prefix_cache)
        self.runner = custom_runner.make(runner, model, num_pages, page_size, slots)
        self.scheduler = (
            Scheduler(pages, max_batch_tokens=max_batch_tokens, max_rows=max_rows)
            if slots is None
            else StateScheduler(pages, slots, max_batch_tokens=max_batch_tokens, max_rows=max_rows)
        )
        self.intake = Intake(model, codec, self.scheduler.capacity)
        self.features = (
            None
            if model.processor is None
            else FeatureStore(model.processor, model.network, max_feature_bytes)
        )
        self.adapters = Adapters(model.network, adapters, max_adapter_bytes)
        self.writer = writer
        self._on_forward = on_forward
        self._live: dict[str, Live] = {}
        self._counters = Counters()
        self._is_retrying = False

    def prepare(self, request: Request) -> Prepared:
        """What may take long before a request can start. Called beside the engine's thread."""
        adapter = None if request.adapter is None else self.adapters.get(request.adapter)
        return replace(self.intake.prepare(request), adapter=adapter)

    def add(self, request: Request, prepared: Prepared, deliver: Deliver) -> None:
        """Raises `RuntimeFault` with a sentence when the request can never be served."""
        if isinstance(request, TokenizeRequest):
            deliver(Done(request.id, prepared.tokenized))
            return
        sequence, work = self.intake.start(request, prepared)
        self._live[request.id] = Live(request, sequence, work, deliver)
        self.scheduler.add(sequence)

    def stats(self) -> LanguageStats:
        counters, pages = self._counters, self.scheduler.pages
        return LanguageStats(
            forwards=counters.forwards,
            rows=counters.rows,
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            generated_tokens=counters.generated_tokens,
            preemptions=self.scheduler.preemptions,
            running=len(self.scheduler.running),
            waiting=len(self.scheduler.waiting),
            pages_free=pages.num_free,
            pages_cached=pages.num_cached,
            pages_used=pages.num_used,
            media_encoded=0 if self.features is None else self.features.num_encoded,
            media_reused=0 if self.features is None else self.features.num_reused,
            guesses_proposed=self.writer.num_proposed,
            guesses_accepted=self.writer.num_accepted,
            weight_bytes=self.model.weight_bytes,
            page_bytes=self._page_bytes,
            adapter_bytes=self.adapters.num_bytes,
        )

    @property
    def _page_bytes(self) -> int:
        pages = self.model.token_bytes * self.scheduler.pages.page_size * self.scheduler.pages.num_pages
        return pages + self.model.state_bytes * self._num_state_slots

    # -- a step ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        self._draft()
        rows = self.scheduler.schedule()
        if not rows:
            assert self._live or self.scheduler.pages.num_used == 0, "pages are held and nobody is there"
            return
        for part in self.runner.parts(rows):
            try:
                self._compute(part)
            except Exception as error:
                if is_out_of_memory(error):
                    self._give_way(part, error)
                    break
                log.exception("a step of %d rows failed", len(part))
                self._fail_rows(part, error)

    def _compute(self, rows: Sequence[Row]) -> None:
        batch = build(rows, self.scheduler.pages.page_size, self.model.device, self.model.position_axes)
        output = self._forward(batch)
        tokens = self._write(batch, output)
        self._deliver(self.scheduler.commit(batch.rows, tokens))
        self._is_retrying = False

    @torch.inference_mode()
    def _forward(self, batch: Batch) -> Output:
        self._note_started(batch.rows)
        wants_hidden = any(not row.sequence.generates for row in batch.rows)
        media = {} if self.features is None else self.features.arguments(batch.rows)
        with self.adapters.active(batch.rows):
            output = self.runner.forward(batch, media=media, with_hidden=wants_hidden)
        _check(output, self.runner, batch)
        if wants_hidden:
            self._collect_hidden(batch, output)
        self._counters.forwards += 1
        self._counters.rows += len(batch.rows)
        if self._on_forward is not None:
            self._on_forward(len(batch.rows))
        return output

    def _note_started(self, rows: Sequence[Row]) -> None:
        for row in rows:
            live = self._live[row.sequence.id]
            if not live.started:
                live.started = True
                self._counters.prompt_tokens += row.sequence.prompt_length
                self._counters.cached_tokens += row.sequence.cached_tokens or 0
                live.deliver(Started(row.sequence.id))

    def _collect_hidden(self, batch: Batch, output: Output) -> None:
        first = 0
        for row in batch.rows:
            work = self._live[row.sequence.id].work
            if isinstance(work, HiddenStates):
                if row.start == 0:
                    # It may have lost its pages and come back, with other chunks than before.
                    work.chunks.clear()
                chunk = output.hidden[work.layer][first : first + row.count]
                work.chunks[row.start] = chunk.float().cpu()
            first += row.count

    def _draft(self) -> None:
        for live in self._live.values():
            if isinstance(live.work, Answer):
                self.writer.draft(live.sequence, live.work)

    def _write(self, batch: Batch, output: Output) -> list[tuple[int, ...]]:
        rows = [row for row in batch.rows if row.samples]
        works = [self._live[row.sequence.id].work for row in rows]
        answers = [work for work in works if isinstance(work, Answer)]
        self._note_scores(batch, output)
        return self.writer.write(rows, answers, output.logits[: batch.num_sampled]) if rows else []

    def _note_scores(self, batch: Batch, output: Output) -> None:
        """How likely prompts were whose requests ask for that."""
        logits = output.logits[batch.num_sampled :]
        for row in batch.rows:
            work, places = self._live[row.sequence.id].work, [position + 1 for position in row.scored]
            if places and isinstance(work, Answer):
                tokens = [row.sequence.tokens[place] for place in places]
                found = sample.scores(logits[: len(places)], tokens, work.choice.params.prompt_logprobs or 0)
                logits = logits[len(places) :]
                for place, token, scores in zip(places, tokens, found, strict=True):
                    work.note_prompt(place, token, scores)

    # -- results ---------------------------------------------------------------------------------------------

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        """A decoder that chokes on one request's tokens, or a dead listener, costs nobody else theirs."""
        for outcome in outcomes:
            try:
                self._deliver_one(outcome)
            except RuntimeFault as fault:
                self.fail(outcome.sequence.id, fault)
            except Exception as error:
                log.exception("delivering to request %s failed", outcome.sequence.id)
                self.fail(outcome.sequence.id, RuntimeFault(f"the answer cannot be delivered: {error}"))

    def _deliver_one(self, outcome: Outcome) -> None:
        live = self._live.get(outcome.sequence.id)
        if live is None:
            # An earlier one of this step's tokens ended it.
            return
        if isinstance(live.work, HiddenStates):
            self._finish_embedding(live, live.work)
        elif outcome.token is not None:
            self._deliver_token(live, live.work, outcome.token, outcome.finish)

    def _finish_embedding(self, live: Live, work: HiddenStates) -> None:
        result = Embedding(tuple(live.sequence.tokens), torch.cat(list(work.chunks.values())))
        self._end(live.request.id, Done(live.request.id, result))

    def _deliver_token(self, live: Live, answer: Answer, token: int, finish: FinishReason | None) -> None:
        self._counters.generated_tokens += 1
        step = answer.push(token, finish)
        live.deliver(Token(live.request.id, token, step.text, step.logprobs, step.tool_calls, step.reasoning))
        if step.finish is not None:
            self._end(live.request.id, Done(live.request.id, _completion(live.sequence, answer, step.finish)))

    # -- the beginning and the end of a request --------------------------------------------------------------

    def _end(self, request_id: str, event: Event) -> None:
        live = self._live.pop(request_id, None)
        if live is not None:
            self.scheduler.cancel(live.sequence)
            if all(each.sequence.adapter is None for each in self._live.values()):
                self.adapters.rest()
            live.deliver(event)

    def _fail_rows(self, rows: Sequence[Row], error: BaseException) -> None:
        fault = error if isinstance(error, RuntimeFault) else RuntimeFault(f"a step failed: {error}")
        for row in rows:
            self.fail(row.sequence.id, fault)

    def _give_way(self, rows: Sequence[Row], error: BaseException) -> None:
        """Nothing was committed, so scheduling again is the retry: first with half the tokens, then without
        the largest request.
        """
        log.warning("a forward of %d rows ran out of memory: %s", len(rows), error)
        if not self._is_retrying:
            self._is_retrying = True
            self.scheduler.max_batch_tokens = max(1, self.scheduler.max_batch_tokens // 2)
            self.scheduler.max_rows = min(self.scheduler.max_rows, self.scheduler.max_batch_tokens)
            return
        self._is_retrying = False
        largest = max((row.sequence for row in rows), key=lambda sequence: len(sequence.tokens))
        size = f"{len(largest.tokens)} tokens"
        self.fail(largest.id, OutOfMemory(f"a request of {size} does not fit in memory beside the model"))


def _completion(sequence: TokenSequence, answer: Answer, finish: FinishReason) -> Completion:
    return Completion(
        text=answer.text,
        token_ids=tuple(answer.tokens),
        finish_reason=finish,
        prompt_tokens=sequence.prompt_length,
        cached_tokens=sequence.cached_tokens or 0,
        logprobs=tuple(answer.logprobs),
        tool_calls=tuple(answer.tool_calls),
        reasoning="".join(answer.thoughts),
        reasoning_tokens=answer.num_thought,
        prompt_ids=tuple(sequence.tokens[: sequence.prompt_length]),
        prompt_logprobs=(None, *(each for _, each in sorted(answer.prompt_logprobs.items())))
        if answer.choice.params.prompt_logprobs is not None
        else (),
        matched_stop=answer.matched_stop,
    )


def _check(output: Output, runner: Runner, batch: Batch) -> None:
    """A runner may be anybody's."""
    name = type(runner).__name__
    if not isinstance(output, Output):
        raise RuntimeFault(f"the runner {name} answers with {type(output).__name__}; it must be an Output")
    made, wanted = len(output.logits), len(batch.logits_at)
    if made != wanted:
        raise RuntimeFault(f"the runner {name} answers with {made} rows of logits where {wanted} are wanted")


def is_out_of_memory(error: Exception) -> bool:
    """torch has a type for it on accelerators only."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)
