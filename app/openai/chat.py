"""POST /v1/chat/completions."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from aiohttp import web

from app.api.describe import takes
from app.api.read import json_body
from app.openai import requests, shapes
from app.openai.ask import Asked, ask
from app.openai.errors import speaks_openai
from app.openai.shapes import Json
from app.openai.stream import Parts, merged, send, while_listening
from app.openai.types import ChatBody
from runtime.llm.api import Completion, Token
from runtime.platform.handle import Done, Event

routes = web.RouteTableDef()


@routes.post("/v1/chat/completions")
@speaks_openai
@takes(ChatBody)
async def create(request: web.Request) -> web.StreamResponse:
    body = await json_body(request, ChatBody)
    answer_id = requests.new_id("chatcmpl")
    asked = await ask(request, body, answer_id)
    async with while_listening(request, asked.handles):
        if body.stream:
            return await send(request, _parts(body, answer_id, asked))
        answers = await asyncio.gather(*asked.handles)
        choices = [
            {
                **shapes.chat_choice(index, answer, bool(body.logprobs), asked.has_schema),
                **shapes.token_ids(answer, body.return_token_ids),
            }
            for index, answer in enumerate(answers)
        ]
        frame = shapes.frame(answer_id, "chat.completion", body.model)
        more = {
            **shapes.prompt_ids([answers], body.return_token_ids),
            **shapes.prompt_logprobs(answers[0], body.prompt_logprobs is not None),
        }
        return web.json_response(frame.around(choices, usage=shapes.usage([answers]), **more))


async def _parts(body: ChatBody, answer_id: str, asked: Asked) -> Parts:
    """The role of each answer, its text and calls as they come, its end; the usage where it is asked for."""
    frame = shapes.frame(answer_id, "chat.completion.chunk", body.model)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    nothing = {"usage": None} if with_usage else {}
    writers = [
        ChoiceWriter(index, asked.has_schema, body.return_token_ids) for index in range(len(asked.handles))
    ]
    async with aclosing(merged(asked.handles)) as events:
        async for number, event in events:
            for choice in writers[number].choices(event):
                yield frame.around([choice], **nothing)
    if with_usage:
        yield frame.around([], usage=shapes.usage([[await handle for handle in asked.handles]]))


class ChoiceWriter:
    """One answer's events as choices of chunks."""

    def __init__(self, index: int, has_schema: bool, with_token_ids: bool) -> None:
        self._index = index
        self._has_schema = has_schema
        self._with_token_ids = with_token_ids
        self._has_begun = False
        self._num_calls = 0

    def choices(self, event: Event) -> list[Json]:
        choices = []
        if not self._has_begun:
            self._has_begun = True
            role = {"role": "assistant", "content": "", "refusal": None}
            choices.append(shapes.chat_delta(self._index, role))
        match event:
            case Token():
                choices += self._token(event)
            case Done(result=answer):
                choices.append(self._end(answer))
        return choices

    def _end(self, answer: Completion) -> Json:
        extended = shapes.extended_output(answer, self._has_schema)
        delta = {} if extended is None else {"extended_output": extended}
        end = shapes.chat_delta(self._index, delta, finish=shapes.finish_reason(answer))
        return {**end, **shapes.matched_stop(answer)}

    def _token(self, token: Token) -> list[Json]:
        choices = []
        logprobs = None if token.logprobs is None else shapes.chat_logprobs([token.logprobs])
        ids = {"token_ids": [token.token_id]} if self._with_token_ids else {}
        if token.reasoning:
            choices.append(shapes.chat_delta(self._index, {"reasoning_content": token.reasoning}))
        if token.text or logprobs or ids:
            choices.append({**shapes.chat_delta(self._index, {"content": token.text}, logprobs), **ids})
        for call in token.tool_calls:
            numbered = {"index": self._num_calls, **shapes.tool_call(call)}
            choices.append(shapes.chat_delta(self._index, {"tool_calls": [numbered]}))
            self._num_calls += 1
        return choices
