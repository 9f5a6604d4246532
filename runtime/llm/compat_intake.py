"""From a request to what the compatibility lane answers; what that lane lacks is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import torch

from runtime.llm import sample
from runtime.llm.answer import Answer
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    EmbedRequest,
    Media,
    Request,
    SamplingParams,
    Tokenized,
    TokenizeRequest,
    media_of,
)
from runtime.llm.encoder_decoder import EncoderDecoder
from runtime.llm.grammar import Constraint, Grammars
from runtime.llm.text import Codec, TextStream
from runtime.llm.vocabulary import Vocabulary
from runtime.platform.errors import Unsupported

SERVED_PARAMS = frozenset(
    [
        *["max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "stop"],
        *["stop_token_ids", "ignore_eos", "min_tokens", "logit_bias", "presence_penalty"],
        *["frequency_penalty", "logprobs", "grammar", "keeps_stop", "shows_control_tokens"],
    ]
)
# There is no reasoning to be told apart.
_SERVED_FIELDS = frozenset(["id", "model", "messages", "prompt", "params", "media", "separates_reasoning"])


@dataclass(frozen=True, slots=True)
class CompatPrepared:
    """`tokens` are the encoder's, `inputs` its further ones of this prompt; `text` is what was asked."""

    tokens: list[int]
    text: str = ""
    media: tuple[Media, ...] = ()
    inputs: Mapping[str, torch.Tensor] = field(default_factory=dict)
    constraint: Constraint | None = None
    tokenized: Tokenized | None = None


class CompatIntake:
    def __init__(self, model: EncoderDecoder, codec: Codec) -> None:
        self.codec = codec
        self._model = model
        self._vocabulary = Vocabulary(codec, model.end_ids)
        self._grammars = Grammars(self._vocabulary)

    def prepare(self, request: Request) -> CompatPrepared:
        """What may take long before a request can start. Called beside the engine's thread."""
        if isinstance(request, TokenizeRequest):
            tokens = self.codec.prompt_ids(request)
            pieces = tuple(self._vocabulary.bytes_of(token) for token in tokens)
            return CompatPrepared(
                tokens, tokenized=Tokenized(tuple(tokens), pieces, self._model.context_length)
            )
        if isinstance(request, EmbedRequest):
            raise Unsupported(f"{self.codec.name} is an encoder-decoder, which gives no hidden states here")
        _refuse_what_is_not_served(request)
        _refuse_what_is_not_served(request.params)
        sample.check(request.params, self.codec.vocabulary_size)
        if request.params.logprobs is not None:
            self._vocabulary.make_ready()
        grammar = request.params.grammar
        constraint = None if grammar is None else self._grammars.start(grammar)
        return self._read(request, constraint)

    def answer(self, request: ChatRequest | CompleteRequest, prepared: CompatPrepared) -> Answer:
        params, model = request.params, self._model
        own = frozenset() if params.ignore_eos else model.end_ids
        return Answer(
            sample.choice(params, 1, own | frozenset(params.stop_token_ids), prepared.constraint),
            _Stream(self.codec, params, model),
            None,
            self._vocabulary,
        )

    def _read(self, request: ChatRequest | CompleteRequest, constraint: Constraint | None) -> CompatPrepared:
        asked = self._as_prompt(request)
        media, processor = media_of(asked), self._model.processor
        text = asked.prompt if isinstance(asked, CompleteRequest) and isinstance(asked.prompt, str) else ""
        if processor is None:
            tokens, inputs = self.codec.prompt_ids(asked), {}
        elif len(media) != 1:
            raise Unsupported(f"{self.codec.name} answers about one image; {len(media)} were given")
        else:
            item = processor.item(media[0])
            inputs = dict(item.inputs)
            try:
                tokens = self.codec.prompt_ids(asked, processor.template([item]))
            except ValueError as error:
                raise Unsupported(f"{self.codec.name} does not take this prompt: {error}") from error
        self._check_length(tokens)
        return CompatPrepared(tokens, text, media, inputs, constraint)

    def _as_prompt(self, request: ChatRequest | CompleteRequest) -> ChatRequest | CompleteRequest:
        """Without a chat template, a chat's only message is the prompt."""
        if isinstance(request, CompleteRequest) or self.codec.tokenizer.chat_template:
            return request
        if len(request.messages) != 1:
            raise Unsupported(
                f"{self.codec.name} has no chat template and takes one message;"
                f" {len(request.messages)} were given"
            )
        message = request.messages[0]
        return CompleteRequest(request.id, request.model, message.text, request.params, message.media)

    def _check_length(self, tokens: list[int]) -> None:
        limit = self._model.context_length
        if not tokens:
            raise Unsupported("the prompt is empty; at least one token is needed")
        if len(tokens) > limit:
            raise Unsupported(
                f"the prompt has {len(tokens)} tokens; the context of {self.codec.name} is {limit}"
            )


class _Stream(TextStream):
    """What a prompt's tokens are is nothing to an answer's text, and control tokens inside may be places."""

    def __init__(self, codec: Codec, params: SamplingParams, model: EncoderDecoder) -> None:
        super().__init__(codec, (), params, shows_control_tokens=model.processor is not None)
        self._silent_ids = model.silent_ids

    def push(self, token: int) -> str:
        return "" if token in self._silent_ids else super().push(token)


def _refuse_what_is_not_served(asked: ChatRequest | CompleteRequest | SamplingParams) -> None:
    served = SERVED_PARAMS if isinstance(asked, SamplingParams) else _SERVED_FIELDS
    for each in fields(asked):
        if each.name not in served and getattr(asked, each.name) != _default(each):
            raise Unsupported(f"{each.name} is not served for encoder-decoder models")


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()
