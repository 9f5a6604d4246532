"""What callers say to the language runtime and what they hear back. Types only: no torch, no transformers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from runtime.platform.handle import Event, Handle

if TYPE_CHECKING:
    import torch

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen and when a request ends. Checked by `runtime.llm.sample.check`.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0 and `repetition_penalty` 1 are off. `stop`
    strings are cut from the text; `stop_token_ids` end a request in addition to the model's own end tokens.
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


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant", "tool"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Messages, turned into a prompt by the model's own chat template."""

    id: str
    model: str
    messages: tuple[Message, ...]
    params: SamplingParams = field(default_factory=SamplingParams)


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """A prompt as text or as token ids, continued as it stands."""

    id: str
    model: str
    prompt: str | tuple[int, ...]
    params: SamplingParams = field(default_factory=SamplingParams)


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Hidden states of a prompt; `layer` indexes transformers' `hidden_states` (0 is the embedding, -1 the
    last).
    """

    id: str
    model: str
    prompt: str | tuple[int, ...]
    layer: int = -1


@dataclass(frozen=True, slots=True)
class Token(Event):
    """One generated token; `text` is what became readable by it, possibly nothing."""

    token_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """`token_ids` include the end token, `text` does not and ends before a stop string."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Embedding:
    """`hidden` is [tokens, width], float32, on the CPU."""

    token_ids: tuple[int, ...]
    hidden: torch.Tensor


Request = ChatRequest | CompleteRequest | EmbedRequest


@dataclass(frozen=True, slots=True)
class LanguageStats:
    """Counters since load, and page use now, of one loaded model."""

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


class LanguageRuntime(Protocol):
    """Any thread may call. `submit` starts loading the model when it is not there yet.

    A request that cannot be served ends with `Failed` carrying a `RuntimeFault`; `submit` itself does not
    raise for it, so that every caller has one place to look.
    """

    def models(self) -> tuple[str, ...]: ...

    def load(self, model: str) -> None:
        """Blocks until the model is ready; raises `MissingFile` or `Unsupported`."""

    def unload(self) -> None:
        """Drop the weights of every model without running requests."""

    def submit(self, request: Request) -> Handle[Completion] | Handle[Embedding]: ...

    def cancel(self, request_id: str) -> None: ...

    def stats(self) -> dict[str, LanguageStats]: ...

    def close(self) -> None: ...
