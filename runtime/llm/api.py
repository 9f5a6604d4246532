"""What callers say to the language runtime and what they hear back. Types only: no torch, no transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runtime.platform.handle import Event, Handle

if TYPE_CHECKING:
    import torch

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer must look like, from its first character to its last.

    `text` is a JSON schema, a regular expression, a grammar in llguidance's Lark form or llama.cpp's, or a
    JSON array of the texts to choose from. Structural tags are a JSON object of `triggers` and `structures`
    with `begin`, `schema` and `end`: any text, but from a trigger on one of the structures.
    """

    kind: Literal["json_schema", "regex", "lark", "choice", "structural_tag"]
    text: str


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen and when a request ends. Checked by `runtime.llm.sample.check`.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0 and `repetition_penalty` 1 are off. `stop`
    strings are cut from the text; `stop_token_ids` end a request in addition to the model's own end tokens;
    none of these tokens is chosen before `min_tokens`. `logit_bias` is added to the scores of its tokens.
    The presence and the frequency penalty count generated tokens, the repetition penalty the prompt's too.
    `logprobs` asks for each token's log probability and for so many of the likeliest ones; they are those of
    the model itself, before temperature, penalties and grammar. `prompt_logprobs` asks the same for the
    prompt's tokens, which are then computed anew. `keeps_stop` leaves a stop string at the end of the
    text, and `shows_control_tokens` writes these by their names.
    With a `seed` a request's text does not depend on who shares its batch.
    """

    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    keeps_stop: bool = False
    shows_control_tokens: bool = False
    grammar: Grammar | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call; `parameters` is a JSON schema as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """`pixels` is [height, width, 3], uint8, on the CPU."""

    pixels: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Video:
    """`frames` is [frames, height, width, 3], uint8, on the CPU; `times` are the frames' in seconds."""

    frames: torch.Tensor
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """`samples` is [samples], float32 in -1..1, one channel, on the CPU; `rate` is samples a second."""

    samples: torch.Tensor
    rate: int


Media = Image | Video | Audio


@dataclass(frozen=True, slots=True)
class Message:
    """An assistant's may hold `tool_calls`; a tool's answers the call `tool_call_id`.

    `content` is a text, or texts and media in the order in which the model shall see them.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[str | Media, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    @property
    def parts(self) -> tuple[str | Media, ...]:
        return (self.content,) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def media(self) -> tuple[Media, ...]:
        return tuple(part for part in self.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Messages, turned into a prompt by the model's own chat template.

    With `tools` the answer is searched for calls of them; what belongs to a call is not in its text. With
    `must_call` it is a call of one of the tools named there.

    `template_arguments` are further names for the chat template, such as `enable_thinking`. An answer that
    `continues_last` goes on with the text of the last message, which is the assistant's; without
    `opens_answer` it goes on behind the messages as they stand. What a model thinks aloud is text unless
    `separates_reasoning`, and then a grammar speaks of what comes after it.

    A LoRA `adapter` changes the model for this request alone; a `model` "name:adapter" says the same.
    """

    id: str
    model: str
    messages: tuple[Message, ...]
    params: SamplingParams = field(default_factory=SamplingParams)
    tools: tuple[Tool, ...] = ()
    must_call: tuple[str, ...] = ()
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    continues_last: bool = False
    opens_answer: bool = True
    separates_reasoning: bool = False
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """A prompt as text or as token ids, continued as it stands.

    With `media` the prompt is text and holds the model's own placeholder for each of them, in their order.
    The `adapter` is as in `ChatRequest`.
    """

    id: str
    model: str
    prompt: str | tuple[int, ...]
    params: SamplingParams = field(default_factory=SamplingParams)
    media: tuple[Media, ...] = ()
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Hidden states of a prompt; `layer` indexes transformers' `hidden_states` (0 is the embedding, -1 the
    last). `media` and `adapter` are as in `CompleteRequest`.
    """

    id: str
    model: str
    prompt: str | tuple[int, ...]
    layer: int = -1
    media: tuple[Media, ...] = ()
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """The token ids of a prompt, or of messages in the model's chat template; nothing is computed, so that an
    `adapter` changes nothing.
    """

    id: str
    model: str
    prompt: str | tuple[int, ...] | tuple[Message, ...]
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A token with its log probability; `bytes` may be a part of a character."""

    token_id: int
    bytes: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class Logprobs:
    """The token that was chosen, and the likeliest ones in its place, best first."""

    chosen: Scored
    top: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Token(Event):
    """One generated token; `text` is what became readable by it, possibly nothing.

    `tool_calls` are those that it completed. `reasoning` is text too, of thoughts that are kept apart.
    """

    token_id: int
    text: str
    logprobs: Logprobs | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """`token_ids` include the end token, `text` does not and ends before a stop string.

    `logprobs` has one entry for each token but the end token when they were asked for. `extended` is what a
    model says in a form of its own, such as boxes, as JSON has it. `prompt_logprobs` has one entry for each
    token of the prompt, the first of which nothing foretells. `matched_stop` is the stop string that ended
    the answer, or the end token where the request named it.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    logprobs: tuple[Logprobs, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    extended: Mapping[str, Any] | None = None
    reasoning: str = ""
    reasoning_tokens: int = 0
    prompt_ids: tuple[int, ...] = ()
    prompt_logprobs: tuple[Logprobs | None, ...] = ()
    matched_stop: str | int | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """`hidden` is [tokens, width], float32, on the CPU."""

    token_ids: tuple[int, ...]
    hidden: torch.Tensor


@dataclass(frozen=True, slots=True)
class Tokenized:
    """`pieces` are the tokens' bytes; control tokens stand there by their names."""

    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    context_length: int


Request = ChatRequest | CompleteRequest | EmbedRequest | TokenizeRequest


def media_of(request: Request) -> tuple[Media, ...]:
    """What a request shows the model, in order."""
    match request:
        case ChatRequest(messages=messages):
            return tuple(each for message in messages for each in message.media)
        case CompleteRequest() | EmbedRequest():
            return request.media
        case TokenizeRequest(prompt=prompt) if not isinstance(prompt, str):
            return tuple(each for message in prompt if isinstance(message, Message) for each in message.media)
    return ()


@dataclass(frozen=True, slots=True)
class LanguageStats:
    """Counters since load, and page use now, of one loaded model. `page_bytes` counts slots of states too."""

    forwards: int
    rows: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    preemptions: int
    running: int
    waiting: int
    pages_free: int
    pages_cached: int
    pages_used: int
    media_encoded: int = 0
    media_reused: int = 0
    guesses_proposed: int = 0
    guesses_accepted: int = 0
    weight_bytes: int = 0
    page_bytes: int = 0
    adapter_bytes: int = 0


class LanguageRuntime(Protocol):
    """Any thread may call. `submit` starts loading the model when it is not there yet.

    A request that cannot be served ends with `Failed` carrying a `RuntimeFault`; `submit` itself does not
    raise for it, so that every caller has one place to look.
    """

    def models(self) -> tuple[str, ...]:
        """Names that requests may say; "name:adapter" for adapters that tell which model they belong to."""

    def load(self, model: str) -> None:
        """Blocks until the model is ready; raises `MissingFile` or `Unsupported`."""

    def unload(self) -> None:
        """Drop the weights of every model without running requests."""

    def submit(self, request: Request) -> Handle[Completion] | Handle[Embedding] | Handle[Tokenized]: ...

    def cancel(self, request_id: str) -> None: ...

    def stats(self) -> dict[str, LanguageStats]: ...

    def close(self) -> None: ...
