"""Between text and token ids: prompts by the model's own chat template, and answers as they become readable.

It knows no model weights and no scheduling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from tokenizers.decoders import DecodeStream
from transformers import AutoTokenizer

from runtime.llm import composed, reasoning, tool_calls
from runtime.llm.api import (
    Audio,
    ChatRequest,
    Image,
    Media,
    Message,
    Request,
    SamplingParams,
    Tool,
    Video,
    media_of,
)
from runtime.llm.reasoning import ReasoningStyle
from runtime.llm.tool_calls import ToolStyle
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

# Enough of the prompt for a decoder to know whether the first token begins with a space.
_CONTEXT_TOKENS = 8
# Enough of it to hold a marker that the template puts behind the messages.
_TAIL_TOKENS = 32
_MODALITIES: Mapping[type[Media], str] = {Image: "images", Video: "videos", Audio: "audio"}
# What is decided elsewhere, so that a caller cannot set it as an argument of the template.
_NOT_FOR_CALLERS = frozenset(
    [
        *["conversation", "messages", "tools", "documents"],
        *["chat_template", "add_generation_prompt", "continue_final_message", "tokenize"],
        *["return_dict", "return_tensors", "return_assistant_tokens_mask", "padding"],
        *["truncation", "max_length", "tokenizer_kwargs", "processor_kwargs"],
        *["sanitize_control_tokens", "load_audio_from_video"],
    ]
)


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

    def serialised(self) -> str:
        """The tokenizer as JSON, in the form of its library."""
        plain = copy(self.backend)
        plain.no_padding()
        plain.no_truncation()
        text: str = plain.to_str()
        return text

    def prompt_ids(self, request: Request, template: Any = None) -> list[int]:
        """`template` is a transformers processor, which renders media too; without it, text only."""
        if template is None and media_of(request):
            raise Unsupported(f"{self.name} takes text only, no images, videos or sounds")
        if isinstance(request, ChatRequest):
            return self._chat_ids(request.messages, template, request)
        prompt = request.prompt
        if isinstance(prompt, str):
            _check_text(prompt)
            return self._completion_ids(prompt, media_of(request), template)
        if prompt and isinstance(prompt[0], Message):
            return self._chat_ids([each for each in prompt if isinstance(each, Message)], template)
        tokens = [each for each in prompt if isinstance(each, int)]
        strange = [token for token in tokens if not 0 <= token < self.vocabulary_size]
        if strange:
            raise Unsupported(
                f"token {strange[0]} is not in the vocabulary of {self.vocabulary_size} of {self.name}"
            )
        return tokens

    def _completion_ids(self, prompt: str, media: Sequence[Media], template: Any) -> list[int]:
        if not media:
            ids: list[int] = self.backend.encode(prompt).ids
            return ids
        given = {
            _MODALITIES[kind]: [_raw(each) for each in media if type(each) is kind] for kind in _MODALITIES
        }
        return _plain_ids(template(text=[prompt], **{kind: each for kind, each in given.items() if each}))

    @property
    def tool_style(self) -> ToolStyle:
        return tool_calls.style_of(self._template)

    @property
    def reasoning_style(self) -> ReasoningStyle | None:
        return reasoning.style_of(self._template)

    def is_reasoning(self, request: ChatRequest, tokens: Sequence[int], style: ReasoningStyle) -> bool:
        """Whether the prompt leaves off inside of what the model thinks aloud."""
        if request.continues_last:
            return reasoning.is_open(style, request.messages[-1].text)
        tail: str = self.tokenizer.decode(tokens[-_TAIL_TOKENS:], skip_special_tokens=False)
        return tail.rstrip().endswith(style.open)

    def token_of(self, text: str) -> int | None:
        """The one token that is this text, if there is one."""
        found: int | None = self.backend.token_to_id(text)
        return found

    def is_control_token(self, text: str) -> bool:
        """Whether decoding leaves it out."""
        found = self.tokenizer.added_tokens_decoder.get(self.token_of(text))
        return found is not None and found.special

    @property
    def _template(self) -> str:
        """The text of the chat template; models with several have one for use with tools."""
        template = self.tokenizer.chat_template or ""
        return "\n".join(template.values()) if isinstance(template, dict) else template

    def _chat_ids(
        self, messages: Sequence[Message], template: Any, request: ChatRequest | None = None
    ) -> list[int]:
        """What a message says is text: control tokens that it spells out open and close nothing.

        `request` says what else there is than messages.
        """
        tools = request.tools if request else ()
        arguments = request.template_arguments if request else {}
        continues = request is not None and request.continues_last
        if not messages:
            raise Unsupported("a chat needs at least one message")
        for message in messages:
            _check_text(message.text)
        if not (template or self.tokenizer).chat_template:
            raise Unsupported(
                f"{self.name} has no chat template; supported is completing a prompt as it stands"
            )
        if continues and (messages[-1].role != "assistant" or not messages[-1].text):
            raise Unsupported("only a last message of the assistant with text in it can be continued")
        if taken := _NOT_FOR_CALLERS & set(arguments):
            raise Unsupported(f"{min(taken)} cannot be an argument of the chat template")
        knows_tools = "tools" in self._template
        if tools and not knows_tools:
            messages = _with_instructions(messages, tools)
        try:
            rendered = (template or self.tokenizer).apply_chat_template(
                [_as_template_takes_it(each, knows_tools, template is not None) for each in messages],
                tools=[tool_calls.as_json(tool) for tool in tools] if tools and knows_tools else None,
                add_generation_prompt=not continues and (request is None or request.opens_answer),
                continue_final_message=continues,
                tokenize=True,
                return_dict=True,
                sanitize_control_tokens=True,
                **arguments,
            )
        # a template may delete what should be continued, and not expect its arguments
        except (TemplateError, ValueError, TypeError) as error:
            raise Unsupported(f"the chat template of {self.name} refuses these messages: {error}") from error
        return _plain_ids(rendered)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unsupported(
            f"the text holds half of a surrogate pair at {error.start}; it must be Unicode"
        ) from error


def _plain_ids(rendered: Any) -> list[int]:
    """Processors answer for a batch of one prompt, some with a tensor, tokenizers for the one."""
    ids = rendered["input_ids"]
    ids = list(ids) if isinstance(ids, list | tuple) else ids.tolist()
    return ids[0] if ids and not isinstance(ids[0], int) else ids


def _raw(media: Media) -> Any:
    """As a transformers processor takes it, which here only counts and places it."""
    match media:
        case Image():
            return media.pixels.numpy()
        case Video():
            return media.frames.numpy()
        case Audio():
            return media.samples.numpy()


def _part(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = _MODALITIES[type(part)].rstrip("s")
    return {"type": kind, kind: _raw(part)}


def _as_template_takes_it(message: Message, knows_tools: bool, in_parts: bool) -> dict[str, Any]:
    content = [_part(each) for each in message.parts] if in_parts else message.text
    plain: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls and knows_tools:
        plain["tool_calls"] = [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": json.loads(call.arguments)},
            }
            for call in message.tool_calls
        ]
    elif message.tool_calls:
        calls = tool_calls.written(message.tool_calls)
        plain["content"] = f"{message.text}\n{calls}" if message.text else calls
    return plain


def _with_instructions(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """How to call tools, at the end of the system message, which is made when there is none."""
    text = tool_calls.instructions(tools)
    if messages[0].role == "system":
        return [Message("system", f"{messages[0].text}\n\n{text}"), *messages[1:]]
    return [Message("system", text), *messages]


def load(path: Path, others: Mapping[str, Path] | None = None) -> Codec:
    """`others` are the models from which a folder may borrow its tokenizer, by name."""
    if not path.exists():
        raise MissingFile(f"there is no language model at {path.name}")
    try:
        tokenizer = composed.tokenizer(path, others or {}) if composed.is_composed(path) else _tokenizer(path)
    except RuntimeFault:
        raise
    except Exception as error:
        # As with weights, damaged files come out of transformers as any kind of error.
        raise Unsupported(f"the tokenizer of {path.name} cannot be loaded ({error})") from error
    return Codec(tokenizer, path.name)


def _tokenizer(path: Path) -> Any:
    folder, file = (path, None) if path.is_dir() else (path.parent, path.name)
    return AutoTokenizer.from_pretrained(folder, gguf_file=file, local_files_only=True)


class TextStream:
    """One answer's text, piece by piece: never half a character, never a part of a stop string."""

    def __init__(
        self,
        codec: Codec,
        context: Sequence[int],
        params: SamplingParams,
        *,
        shows_control_tokens: bool = False,
    ) -> None:
        self._backend = codec.backend
        hides = not (shows_control_tokens or params.shows_control_tokens)
        self._decoder = DecodeStream(list(context[-_CONTEXT_TOKENS:]), skip_special_tokens=hides)
        self._stop = params.stop
        self._keeps_stop = params.keeps_stop
        self._held = ""
        self.text = ""
        self.matched: str | None = None

    @property
    def stopped(self) -> bool:
        return self.matched is not None

    def push(self, token: int) -> str:
        """What became readable by this token; `stopped` tells that it completed a stop string."""
        self._held += self._decoder.step(self._backend, token) or ""
        ends = [(at, each) for each in self._stop if (at := self._held.find(each)) >= 0]
        if ends:
            at, self.matched = min(ends)
            return self._release(at + len(self.matched) if self._keeps_stop else at)
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
