"""Answers of the language runtime as the JSON of the OpenAI protocol. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.llm.api import Completion, Logprobs, Scored, Tokenized, ToolCall

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
        "completion_tokens_details": {
            "reasoning_tokens": sum(answer.reasoning_tokens for each in answers for answer in each)
        },
    }


def finish_reason(answer: Completion) -> str:
    return "tool_calls" if answer.tool_calls else answer.finish_reason


def extended_output(answer: Completion, has_schema: bool) -> Json | None:
    """What a model says in a form of its own, and under "structured" the value that a schema asked for."""
    found: Json = dict(answer.extended or {})
    if has_schema:
        try:
            found["structured"] = json.loads(answer.text)
        except ValueError:
            # an answer that was cut off is none
            return found or None
    return found or None


def chat_choice(index: int, answer: Completion, with_logprobs: bool, has_schema: bool) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if (extended := extended_output(answer, has_schema)) is not None:
        message["extended_output"] = extended
    if answer.tool_calls:
        message["content"] = answer.text if answer.text.strip() else None
        message["tool_calls"] = [tool_call(each) for each in answer.tool_calls]
    return {
        "index": index,
        "message": message,
        "logprobs": chat_logprobs(answer.logprobs) if with_logprobs else None,
        "finish_reason": finish_reason(answer),
        **matched_stop(answer),
    }


def matched_stop(answer: Completion) -> Json:
    return {} if answer.matched_stop is None else {"matched_stop": answer.matched_stop}


def token_ids(answer: Completion, wanted: bool) -> Json:
    return {"token_ids": list(answer.token_ids)} if wanted else {}


def prompt_ids(answers: Sequence[Sequence[Completion]], wanted: bool) -> Json:
    """One list for each prompt; those of a single prompt stand alone."""
    found = [list(each[0].prompt_ids) for each in answers]
    return {"prompt_token_ids": found[0] if len(found) == 1 else found} if wanted else {}


def prompt_logprobs(answer: Completion, wanted: bool) -> Json:
    """Each token of the prompt and the likeliest in its place, by their ids."""
    return {"prompt_logprobs": [_by_id(each) for each in answer.prompt_logprobs]} if wanted else {}


def _by_id(token: Logprobs | None) -> Json | None:
    if token is None:
        return None
    scored = {each.token_id: each for each in (token.chosen, *token.top)}
    return {str(id): {"logprob": each.logprob, "decoded_token": _text(each)} for id, each in scored.items()}


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


def prompt_text_logprobs(prompt: Tokenized, tokens: Sequence[Logprobs | None]) -> Json:
    """Those of an echoed prompt, whose first token nothing foretells."""
    found = text_logprobs([each for each in tokens if each is not None], len(_piece(prompt.pieces[0])))
    first = {"tokens": [_piece(prompt.pieces[0])], "token_logprobs": [None], "top_logprobs": [None]}
    return joined({**first, "text_offset": [0]}, found)


def joined(first: Json, second: Json) -> Json:
    return {name: [*first[name], *second[name]] for name in first}


def echoed_text(prompt: Tokenized) -> str:
    return _piece(b"".join(prompt.pieces))


def _piece(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _scored(token: Scored) -> Json:
    return {"token": _text(token), "bytes": list(token.bytes), "logprob": token.logprob}


def _text(token: Scored) -> str:
    return token.bytes.decode("utf-8", "replace")
