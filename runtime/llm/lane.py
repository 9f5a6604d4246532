"""One loaded model and its live requests: schedule, build, forward, sample, commit, deliver.

Touched by the engine's thread only. A fault in a step ends the requests of that step, never the lane.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from runtime.llm import sample, tool_calls
from runtime.llm.answer import Answer
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    Completion,
    Embedding,
    EmbedRequest,
    FinishReason,
    Grammar,
    LanguageStats,
    Request,
    SamplingParams,
    Token,
    Tokenized,
    TokenizeRequest,
    media_of,
)
from runtime.llm.batch import Batch, build
from runtime.llm.features import FeatureStore
from runtime.llm.grammar import Constraint, Grammars
from runtime.llm.media import MediaPrompt
from runtime.llm.model import LanguageModel
from runtime.llm.pages import Pages
from runtime.llm.runner import Output, Runner
from runtime.llm.scheduler import Outcome, Row, Scheduler, TokenSequence
from runtime.llm.text import Codec, TextStream
from runtime.llm.tool_calls import ToolStream
from runtime.llm.vocabulary import Vocabulary
from runtime.platform.errors import OutOfMemory, RuntimeFault, Unsupported
from runtime.platform.handle import CancelledEvent, Done, Event, Failed, Started

log = logging.getLogger(__name__)

Deliver = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request's tokens, and what else was made of it before it starts."""

    tokens: list[int]
    media: MediaPrompt | None = None
    constraint: Constraint | None = None
    tokenized: Tokenized | None = None


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """What an embed request collects: chunks by where they begin, so that one made anew replaces itself."""

    layer: int
    chunks: dict[int, torch.Tensor] = field(default_factory=dict)


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


class Lane:
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
        on_forward: Callable[[int], None] | None,
    ) -> None:
        self.model = model
        self.codec = codec
        self.runner = Runner(model, num_pages, page_size)
        self.scheduler = Scheduler(
            Pages(num_pages, page_size), max_batch_tokens=max_batch_tokens, max_rows=max_rows
        )
        self.vocabulary = Vocabulary(codec, model.end_ids | codec.end_ids)
        self.grammars = Grammars(self.vocabulary)
        self.features = (
            None
            if model.processor is None
            else FeatureStore(model.processor, model.network, max_feature_bytes)
        )
        self._on_forward = on_forward
        self._live: dict[str, Live] = {}
        self._counters = Counters()
        self._is_retrying = False

    @property
    def is_idle(self) -> bool:
        return not self._live

    def has(self, request_id: str) -> bool:
        return request_id in self._live

    @property
    def max_length(self) -> int:
        return min(self.model.context_length, self.scheduler.capacity)

    def prepare(self, request: Request) -> Prepared:
        """What may take long before a request can start. Called beside the engine's thread."""
        tokens, media = self._read(request)
        if isinstance(request, TokenizeRequest):
            pieces = tuple(self.vocabulary.bytes_of(token) for token in tokens)
            return Prepared(tokens, tokenized=Tokenized(tuple(tokens), pieces, self.max_length))
        if isinstance(request, EmbedRequest):
            return Prepared(tokens, media)
        sample.check(request.params, self.codec.vocabulary_size)
        if request.params.logprobs is not None:
            self.vocabulary.make_ready()
        grammar = self._grammar(request)
        return Prepared(tokens, media, None if grammar is None else self.grammars.start(grammar))

    def _read(self, request: Request) -> tuple[list[int], MediaPrompt | None]:
        processor = self.model.processor
        if processor is None:
            return self.codec.prompt_ids(request), None
        items = [processor.item(each) for each in media_of(request)]
        tokens = self.codec.prompt_ids(request, processor.template(items))
        return tokens, processor.prompt(tokens, items, self.model.network) if items else None

    def add(self, request: Request, prepared: Prepared, deliver: Deliver) -> None:
        """Raises `RuntimeFault` with a sentence when the request can never be served."""
        if isinstance(request, TokenizeRequest):
            deliver(Done(request.id, prepared.tokenized))
            return
        if isinstance(request, EmbedRequest):
            live = self._embed(request, prepared, deliver)
        else:
            live = self._generate(request, prepared, deliver)
        self._live[request.id] = live
        self.scheduler.add(live.sequence)

    def cancel(self, request_id: str) -> None:
        self._end(request_id, CancelledEvent(request_id))

    def fail(self, request_id: str, error: BaseException) -> None:
        self._end(request_id, Failed(request_id, error))

    def cancel_all(self) -> None:
        for request_id in list(self._live):
            self.cancel(request_id)

    def fail_all(self, error: BaseException) -> None:
        for request_id in list(self._live):
            self.fail(request_id, error)

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
        )

    # -- a step ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        rows = self.scheduler.schedule()
        if not rows:
            assert self._live or self.scheduler.pages.num_used == 0, "pages are held and nobody is there"
            return
        try:
            self._compute(rows)
        except Exception as error:
            if _is_out_of_memory(error):
                self._give_way(rows, error)
            else:
                log.exception("a step of %d rows failed", len(rows))
                self._fail_rows(rows, error)

    def _compute(self, rows: Sequence[Row]) -> None:
        batch = build(rows, self.scheduler.pages.page_size, self.model.device, self.model.position_axes)
        output = self._forward(batch)
        tokens = self._sample(batch, output)
        self._deliver(self.scheduler.commit(batch.rows, tokens))
        self._is_retrying = False

    def _forward(self, batch: Batch) -> Output:
        self._note_started(batch.rows)
        wants_hidden = any(not row.sequence.generates for row in batch.rows)
        media = {} if self.features is None else self.features.arguments(batch.rows)
        output = self.runner.forward(batch, media=media, with_hidden=wants_hidden)
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

    def _sample(self, batch: Batch, output: Output) -> list[int]:
        sequences = [row.sequence for row in batch.rows if row.samples]
        if not sequences:
            return []
        works = [self._live[sequence.id].work for sequence in sequences]
        answers = [work for work in works if isinstance(work, Answer)]
        choices = [answer.choice for answer in answers]
        chosen = sample.choose(output.logits, choices, [sequence.tokens for sequence in sequences])
        for row, scores in chosen.scores.items():
            answers[row].scores = scores
        return chosen.tokens

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
        live = self._live[outcome.sequence.id]
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
        live.deliver(Token(live.request.id, token, step.text, step.logprobs, step.tool_calls))
        if step.finish is not None:
            self._end(live.request.id, Done(live.request.id, _completion(live.sequence, answer, step.finish)))

    # -- the beginning and the end of a request --------------------------------------------------------------

    def _grammar(self, request: ChatRequest | CompleteRequest) -> Grammar | None:
        if isinstance(request, CompleteRequest) or not request.must_call:
            return request.params.grammar
        if request.params.grammar is not None:
            raise Unsupported("an answer that must call a tool cannot have a grammar of its own")
        wanted = [tool for tool in request.tools if tool.name in request.must_call]
        if not wanted:
            raise Unsupported(f"there is no tool called {request.must_call[0]}")
        return tool_calls.demand(self.codec.tool_style, wanted)

    def _generate(self, request: ChatRequest | CompleteRequest, prepared: Prepared, deliver: Deliver) -> Live:
        params, tokens = request.params, prepared.tokens
        self._check_length(tokens, room_for=1)
        end_ids = self._end_ids(params)
        sequence = _sequence(
            request.id,
            prepared,
            max_length=min(len(tokens) + params.max_tokens, self.max_length),
            end_ids=end_ids,
        )
        tools = request.tools if isinstance(request, ChatRequest) else ()
        work = Answer(
            sample.choice(params, len(tokens), end_ids, prepared.constraint),
            TextStream(self.codec, tokens, params.stop, shows_control_tokens=bool(tools)),
            ToolStream(self.codec.tool_style, tools) if tools else None,
            self.vocabulary,
        )
        return Live(request, sequence, work, deliver)

    def _embed(self, request: EmbedRequest, prepared: Prepared, deliver: Deliver) -> Live:
        tokens, count = prepared.tokens, self.model.num_hidden
        if not -count <= request.layer < count:
            raise Unsupported(f"layer {request.layer} is not there; supported are {-count} to {count - 1}")
        self._check_length(tokens, room_for=0)
        sequence = _sequence(request.id, prepared, max_length=len(tokens), generates=False)
        return Live(request, sequence, HiddenStates(request.layer), deliver)

    def _end_ids(self, params: SamplingParams) -> frozenset[int]:
        own = frozenset() if params.ignore_eos else self.model.end_ids | self.codec.end_ids
        return own | frozenset(params.stop_token_ids)

    def _check_length(self, tokens: list[int], room_for: int) -> None:
        if not tokens:
            raise Unsupported("the prompt is empty; at least one token is needed")
        limit = self.max_length - room_for
        if len(tokens) > limit:
            is_context = self.max_length == self.model.context_length
            what = "its context" if is_context else "the memory for its pages"
            raise Unsupported(
                f"the prompt has {len(tokens)} tokens; {what} holds {limit} for a prompt of {self.codec.name}"
            )

    def _end(self, request_id: str, event: Event) -> None:
        live = self._live.pop(request_id, None)
        if live is not None:
            self.scheduler.cancel(live.sequence)
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


def _sequence(
    id: str,
    prepared: Prepared,
    *,
    max_length: int,
    end_ids: frozenset[int] = frozenset(),
    generates: bool = True,
) -> TokenSequence:
    media = prepared.media
    return TokenSequence(
        id,
        prepared.tokens,
        max_length,
        end_ids,
        generates,
        keys=[] if media is None else media.keys,
        atoms=() if media is None else media.atoms,
        media=media,
    )


def _completion(sequence: TokenSequence, answer: Answer, finish: FinishReason) -> Completion:
    return Completion(
        text=answer.text,
        token_ids=tuple(sequence.tokens[sequence.prompt_length :]),
        finish_reason=finish,
        prompt_tokens=sequence.prompt_length,
        cached_tokens=sequence.cached_tokens or 0,
        logprobs=tuple(answer.logprobs),
        tool_calls=tuple(answer.tool_calls),
    )


def _is_out_of_memory(error: Exception) -> bool:
    """torch has a type for it on accelerators only."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)
