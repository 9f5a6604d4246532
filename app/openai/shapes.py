"""Answers of the language runtime as the JSON of the OpenAI protocol. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.llm.api import Completion, Logprobs, Scored, ToolCall

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """What all parts of one answer have in common."""

    id: str
    kind: str
    model: str
    created: int

    def around(self, choices: list[Json], **more: Any) -> Json:
        head = {"id": self.id, "object": self.kind, "created": self.created, "model": self.model}
        return {**head, "choices": choices, **more}


def frame(id: str, kind: str, model: str) -> Frame:
    return Frame(id, kind, model, int(time.time()))


def usage(answers: Sequence[Sequence[Completion]]) -> Json:
    """One list for each prompt; a prompt counts once, however many answers it has."""
    prompt = sum(each[0].prompt_tokens for each in answers)
    generated = sum(len(answer.token_ids) for each in answers for answer in each)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": sum(each[0].cached_tokens for each in answers)},
    }


def finish_reason(answer: Completion) -> str:
    return "tool_calls" if answer.tool_calls else answer.finish_reason


def chat_choice(index: int, answer: Completion, with_logprobs: bool) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message["content"] = answer.text if answer.text.strip() else None
        message["tool_calls"] = [tool_call(each) for each in answer.tool_calls]
    return {
        "index": index,
        "message": message,
        "logprobs": chat_logprobs(answer.logprobs) if with_logprobs else None,
        "finish_reason": finish_reason(answer),
    }


def tool_call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def chat_delta(index: int, delta: Json, logprobs: Json | None = None, finish: str | None = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}


def chat_logprobs(tokens: Sequence[Logprobs]) -> Json:
    content = [
        {**_scored(each.chosen), "top_logprobs": [_scored(other) for other in each.top]} for each in tokens
    ]
    return {"content": content, "refusal": None}


def text_choice(index: int, text: str, logprobs: Json | None = None, finish: str | None = None) -> Json:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}


def text_logprobs(tokens: Sequence[Logprobs], start: int = 0) -> Json:
    """The older form; `start` is how many characters came before."""
    texts = [_text(each.chosen) for each in tokens]
    offsets = [start + sum(len(text) for text in texts[:at]) for at in range(len(texts))]
    return {
        "tokens": texts,
        "token_logprobs": [each.chosen.logprob for each in tokens],
        "top_logprobs": [{_text(other): other.logprob for other in each.top} for each in tokens],
        "text_offset": offsets,
    }


def _scored(token: Scored) -> Json:
    return {"token": _text(token), "bytes": list(token.bytes), "logprob": token.logprob}


def _text(token: Scored) -> str:
    return token.bytes.decode("utf-8", "replace")
