"""A response as JSON, whole and as the events of a stream. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.openai import response_messages as items
from app.openai import shapes
from app.openai.response_types import ResponseBody
from app.openai.shapes import Json
from runtime.llm.api import Completion, Token, ToolCall
from runtime.platform.handle import Done, Event


@dataclass(slots=True)
class ResponseWriter:
    """One answer's events, in their order; `output` grows with them and is the whole answer at the end."""

    body: ResponseBody
    id: str
    has_schema: bool
    created: int = field(default_factory=lambda: int(time.time()))
    output: list[Json] = field(default_factory=list)
    _reasoning: str | None = None
    _text: str | None = None
    _key: str = ""
    _number: int = -1

    def begin(self) -> Iterator[Json]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self.response("in_progress"))

    def write(self, event: Event) -> Iterator[Json]:
        match event:
            case Token(text=text, reasoning=reasoning, tool_calls=calls):
                if reasoning:
                    yield from self._think(reasoning)
                if text:
                    yield from self._say(text)
                for call in calls:
                    yield from self._call(call)
            case Done(result=answer):
                yield from self._end(answer)

    def response(self, status: str, answer: Completion | None = None) -> Json:
        body = self.body
        incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": incomplete,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "model": body.model,
            "output": list(self.output),
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "reasoning": body.reasoning.model_dump() if body.reasoning else {"effort": None, "summary": None},
            "store": body.store is not False,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "text": _text_settings(body),
            "tool_choice": _dumped(body.tool_choice) or "auto",
            "tools": [each.model_dump() for each in body.tools or []],
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "usage": None if answer is None else _usage(answer),
            "user": body.user,
            "metadata": body.metadata or {},
        }

    # -- items -----------------------------------------------------------------------------------------------

    def _think(self, text: str) -> Iterator[Json]:
        if self._reasoning is None:
            self._reasoning, self._key = "", f"{self.id}_{len(self.output)}"
            yield self._added(items.reasoning_item(self._key, "", "in_progress"))
        self._reasoning += text
        place = self._place(content_index=0)
        yield self._event("response.reasoning_text.delta", **place, delta=text)

    def _finish_thoughts(self) -> Iterator[Json]:
        if self._reasoning is None:
            return
        place = self._place(content_index=0)
        yield self._event("response.reasoning_text.done", **place, text=self._reasoning)
        yield self._done(items.reasoning_item(self._key, self._reasoning))
        self._reasoning = None

    def _say(self, text: str) -> Iterator[Json]:
        if self._text is None:
            yield from self._finish_thoughts()
            self._text, self._key = "", f"{self.id}_{len(self.output)}"
            yield self._added(items.message_item(self._key, [], "in_progress"))
            where = self._place(content_index=0)
            yield self._event("response.content_part.added", **where, part=items.text_part(""))
        self._text += text
        where = self._place(content_index=0)
        yield self._event("response.output_text.delta", **where, delta=text, logprobs=[])

    def _finish_text(self, status: str, **more: Any) -> Iterator[Json]:
        if self._text is None:
            return
        where, part = self._place(content_index=0), items.text_part(self._text)
        yield self._event("response.output_text.done", **where, text=self._text, logprobs=[])
        yield self._event("response.content_part.done", **where, part=part)
        yield self._done(items.message_item(self._key, [part], status, **more))
        self._text = None

    def _call(self, call: ToolCall) -> Iterator[Json]:
        yield from self._finish_thoughts()
        yield from self._finish_text("completed")
        yield self._added(items.call_item(call, "", "in_progress"))
        where = self._place()
        yield self._event("response.function_call_arguments.delta", **where, delta=call.arguments)
        done = {"arguments": call.arguments, "name": call.name}
        yield self._event("response.function_call_arguments.done", **where, **done)
        yield self._done(items.call_item(call, call.arguments))

    def _end(self, answer: Completion) -> Iterator[Json]:
        yield from self._finish_thoughts()
        status = "incomplete" if answer.finish_reason == "length" else "completed"
        if not self.output and self._text is None:
            # an answer without a word is an empty message
            yield from self._say("")
        extended = shapes.extended_output(answer, self.has_schema)
        yield from self._finish_text(status, **({} if extended is None else {"extended_output": extended}))
        for image in items.image_items(self.id, answer):
            yield self._added({**image, "status": "in_progress", "result": None})
            yield self._done(image)
        yield self._event(f"response.{status}", response=self.response(status, answer))

    # -- events ----------------------------------------------------------------------------------------------

    def _added(self, item: Json) -> Json:
        self.output.append(item)
        return self._event("response.output_item.added", output_index=len(self.output) - 1, item=item)

    def _done(self, item: Json) -> Json:
        self.output[-1] = item
        return self._event("response.output_item.done", output_index=len(self.output) - 1, item=item)

    def _place(self, **more: int) -> Json:
        """Where in the answer: its newest item."""
        return {"item_id": self.output[-1]["id"], "output_index": len(self.output) - 1, **more}

    def _event(self, kind: str, **more: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **more}


def _usage(answer: Completion) -> Json:
    given, made = answer.prompt_tokens, len(answer.token_ids)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": given + made,
    }


def _text_settings(body: ResponseBody) -> Json:
    form = body.text.format if body.text else None
    return {"format": {"type": "text"} if form is None else form.model_dump(by_alias=True, exclude_none=True)}


def _dumped(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else value.model_dump()
