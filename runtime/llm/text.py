"""Between text and token ids: prompts by the model's own chat template, and answers as they become readable.

It knows no model weights and no scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from tokenizers.decoders import DecodeStream
from transformers import AutoTokenizer

from runtime.llm.api import ChatRequest, Message, Request
from runtime.platform.errors import MissingFile, Unsupported

# Enough of the prompt for a decoder to know whether the first token begins with a space.
_CONTEXT_TOKENS = 8


class Codec:
    """A model's tokenizer. Any thread may use it: encoding changes nothing in it."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise Unsupported(f"the tokenizer of {name} has no fast form; supported are those that have one")
        self.name = name
        self.tokenizer = tokenizer
        self.backend = tokenizer.backend_tokenizer
        self.end_ids = frozenset() if tokenizer.eos_token_id is None else frozenset([tokenizer.eos_token_id])
        self.vocabulary_size = len(tokenizer)

    def prompt_ids(self, request: Request) -> list[int]:
        if isinstance(request, ChatRequest):
            return self._chat_ids(request.messages)
        if isinstance(request.prompt, str):
            ids: list[int] = self.backend.encode(request.prompt).ids
            return ids
        strange = [token for token in request.prompt if not 0 <= token < self.vocabulary_size]
        if strange:
            raise Unsupported(
                f"token {strange[0]} is not in the vocabulary of {self.vocabulary_size} of {self.name}"
            )
        return list(request.prompt)

    def _chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """What a message says is text: control tokens that it spells out open and close nothing."""
        if not messages:
            raise Unsupported("a chat needs at least one message")
        if not self.tokenizer.chat_template:
            raise Unsupported(
                f"{self.name} has no chat template; supported is completing a prompt as it stands"
            )
        conversation = [{"role": each.role, "content": each.content} for each in messages]
        try:
            ids: list[int] = self.tokenizer.apply_chat_template(
                conversation, add_generation_prompt=True, return_dict=False, sanitize_control_tokens=True
            )
        except TemplateError as error:
            raise Unsupported(f"the chat template of {self.name} refuses these messages: {error}") from error
        return ids


def load(path: Path) -> Codec:
    if not path.exists():
        raise MissingFile(f"there is no language model at {path.name}")
    folder, file = (path, None) if path.is_dir() else (path.parent, path.name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file, local_files_only=True)
    except Exception as error:
        # As with weights, damaged files come out of transformers as any kind of error.
        raise Unsupported(f"the tokenizer of {path.name} cannot be loaded ({error})") from error
    return Codec(tokenizer, path.name)


class TextStream:
    """One answer's text, piece by piece: never half a character, never a part of a stop string."""

    def __init__(self, codec: Codec, context: Sequence[int], stop: Sequence[str]) -> None:
        self._backend = codec.backend
        self._decoder = DecodeStream(list(context[-_CONTEXT_TOKENS:]), skip_special_tokens=True)
        self._stop = tuple(stop)
        self._held = ""
        self.text = ""
        self.stopped = False

    def push(self, token: int) -> str:
        """What became readable by this token; `stopped` tells that it completed a stop string."""
        self._held += self._decoder.step(self._backend, token) or ""
        ends = [at for each in self._stop if (at := self._held.find(each)) >= 0]
        if ends:
            self.stopped = True
            return self._release(min(ends))
        return self._release(len(self._held) - self._possible_stop())

    def finish(self) -> str:
        """What was held back and turned out to be no stop string."""
        return "" if self.stopped else self._release(len(self._held))

    def _possible_stop(self) -> int:
        """How many characters at the end may be the beginning of a stop string."""
        longest = max((len(each) - 1 for each in self._stop), default=0)
        for count in range(min(longest, len(self._held)), 0, -1):
            if any(each.startswith(self._held[-count:]) for each in self._stop):
                return count
        return 0

    def _release(self, count: int) -> str:
        piece, self._held = self._held[:count], self._held[count:]
        self.text += piece
        return piece
