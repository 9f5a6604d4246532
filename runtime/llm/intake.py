"""From a request to what the scheduler runs: tokens, media, grammar, and how the answer is chosen and read.

What may take long is done beforehand, beside the engine's thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from runtime.llm import sample, tool_calls
from runtime.llm.adapters import Adapter
from runtime.llm.answer import Answer
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    EmbedRequest,
    Grammar,
    Request,
    SamplingParams,
    Tokenized,
    TokenizeRequest,
    media_of,
)
from runtime.llm.dllm import writer
from runtime.llm.grammar import Constraint, Grammars
from runtime.llm.media import MediaPrompt
from runtime.llm.model import LanguageModel
from runtime.llm.reasoning import ReasoningStream, ReasoningStyle
from runtime.llm.sequence import TokenSequence
from runtime.llm.stills import without_videos
from runtime.llm.text import Codec, TextStream
from runtime.llm.tool_calls import ToolStream
from runtime.llm.vocabulary import Vocabulary
from runtime.platform.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request's tokens, and what else was made of it before it starts."""

    tokens: list[int]
    media: MediaPrompt | None = None
    constraint: Constraint | None = None
    tokenized: Tokenized | None = None
    adapter: Adapter | None = None


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """What an embed request collects: chunks by where they begin, so that one made anew replaces itself."""

    layer: int
    chunks: dict[int, torch.Tensor] = field(default_factory=dict)


class Intake:
    """`capacity` is how many tokens the pages hold."""

    def __init__(self, model: LanguageModel, codec: Codec, capacity: int) -> None:
        self.codec = codec
        self.max_length = min(model.context_length, capacity)
        self._model = model
        self._vocabulary = Vocabulary(codec, model.end_ids | codec.end_ids)
        self._grammars = Grammars(self._vocabulary)

    def prepare(self, request: Request) -> Prepared:
        """What may take long before a request can start. Called beside the engine's thread."""
        tokens, media = self._read(request)
        if isinstance(request, TokenizeRequest):
            pieces = tuple(self._vocabulary.bytes_of(token) for token in tokens)
            return Prepared(tokens, tokenized=Tokenized(tuple(tokens), pieces, self.max_length))
        if isinstance(request, EmbedRequest):
            if self._model.blocks is not None:
                raise Unsupported(
                    f"{self.codec.name} writes in blocks; that gives no hidden states of a prompt"
                )
            return Prepared(tokens, media)
        sample.check(request.params, self.codec.vocabulary_size)
        if self._model.blocks is not None:
            writer.check(request)
        if request.params.logprobs is not None or request.params.prompt_logprobs is not None:
            self._vocabulary.make_ready()
        grammar = self._grammar(request)
        return Prepared(tokens, media, None if grammar is None else self._grammars.start(grammar))

    def _read(self, request: Request) -> tuple[list[int], MediaPrompt | None]:
        processor = self._model.processor
        if processor is None:
            return self.codec.prompt_ids(request), None
        request = without_videos(request, processor.kinds)
        items = processor.items(media_of(request))
        if self._model.encoder is not None and not isinstance(request, TokenizeRequest):
            items = self._model.encoder.fill(items)
        tokens = self.codec.prompt_ids(request, processor.template(items))
        return tokens, processor.prompt(tokens, items, self._model.network) if items else None

    def start(self, request: Request, prepared: Prepared) -> tuple[TokenSequence, Answer | HiddenStates]:
        """Raises `Unsupported` with a sentence when the request can never be served."""
        match request:
            case EmbedRequest():
                return self._embed(request, prepared)
            case ChatRequest() | CompleteRequest():
                return self._generate(request, prepared)
        raise AssertionError(request)

    def _grammar(self, request: ChatRequest | CompleteRequest) -> Grammar | None:
        if isinstance(request, CompleteRequest) or not request.must_call:
            return request.params.grammar
        if request.params.grammar is not None:
            raise Unsupported("an answer that must call a tool cannot have a grammar of its own")
        wanted = [tool for tool in request.tools if tool.name in request.must_call]
        if not wanted:
            raise Unsupported(f"there is no tool called {request.must_call[0]}")
        return tool_calls.demand(self.codec.tool_style, wanted)

    def _generate(
        self, request: ChatRequest | CompleteRequest, prepared: Prepared
    ) -> tuple[TokenSequence, Answer]:
        params, tokens = request.params, prepared.tokens
        self._check_length(tokens, room_for=1)
        end_ids = self._end_ids(params)
        sequence = _sequence(
            request.id,
            prepared,
            max_length=min(len(tokens) + params.max_tokens, self.max_length),
            end_ids=end_ids,
            block=1 if self._model.blocks is None else self._model.blocks.length,
            scores_prompt=params.prompt_logprobs is not None,
        )
        tools = request.tools if isinstance(request, ChatRequest) else ()
        style = self._reasoning_style(request)
        work = Answer(
            sample.choice(params, len(tokens), end_ids, prepared.constraint),
            TextStream(
                self.codec,
                tokens,
                params,
                shows_control_tokens=bool(tools)
                or (style is not None and self.codec.is_control_token(style.close)),
            ),
            ToolStream(self.codec.tool_style, tools) if tools else None,
            self._vocabulary,
        )
        if style is not None and isinstance(request, ChatRequest):
            begins_inside = self.codec.is_reasoning(request, tokens, style)
            work.reasoning = ReasoningStream(style, begins_inside=begins_inside)
            if prepared.constraint is not None:
                prepared.constraint.active = not begins_inside
                prepared.constraint.opener = None if begins_inside else self.codec.token_of(style.open)
        return sequence, work

    def _reasoning_style(self, request: ChatRequest | CompleteRequest) -> ReasoningStyle | None:
        separates = isinstance(request, ChatRequest) and request.separates_reasoning
        return self.codec.reasoning_style if separates else None

    def _embed(self, request: EmbedRequest, prepared: Prepared) -> tuple[TokenSequence, HiddenStates]:
        tokens, count = prepared.tokens, self._model.num_hidden
        if not -count <= request.layer < count:
            raise Unsupported(f"layer {request.layer} is not there; supported are {-count} to {count - 1}")
        self._check_length(tokens, room_for=0)
        sequence = _sequence(request.id, prepared, max_length=len(tokens), generates=False)
        return sequence, HiddenStates(request.layer)

    def _end_ids(self, params: SamplingParams) -> frozenset[int]:
        own = frozenset() if params.ignore_eos else self._model.end_ids | self.codec.end_ids
        return own | frozenset(params.stop_token_ids)

    def _check_length(self, tokens: list[int], room_for: int) -> None:
        if not tokens:
            raise Unsupported("the prompt is empty; at least one token is needed")
        limit = self.max_length - room_for
        if len(tokens) > limit:
            is_context = self.max_length == self._model.context_length
            what = "its context" if is_context else "the memory for its pages"
            raise Unsupported(
                f"the prompt has {len(tokens)} tokens; {what} holds {limit} for a prompt of {self.codec.name}"
            )


def _sequence(
    id: str,
    prepared: Prepared,
    *,
    max_length: int,
    end_ids: frozenset[int] = frozenset(),
    generates: bool = True,
    block: int = 1,
    scores_prompt: bool = False,
) -> TokenSequence:
    media, adapter = prepared.media, prepared.adapter
    keys = [] if media is None else media.keys
    if adapter is not None and prepared.tokens:
        first, *rest = keys or prepared.tokens
        keys = [adapter.own_key(first), *rest]
    return TokenSequence(
        id,
        prepared.tokens,
        max_length,
        end_ids,
        generates,
        keys=keys,
        atoms=() if media is None else media.atoms,
        media=media,
        block=block,
        scores_prompt=scores_prompt,
        adapter=adapter,
    )
