"""POST /v1/completions: prompts continued as they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from aiohttp import web

from app.api.describe import takes
from app.api.read import json_body
from app.keys import STARTUP
from app.openai import requests, shapes
from app.openai.errors import speaks_openai
from app.openai.stream import Parts, merged, send, while_listening
from app.openai.types import CompletionBody
from runtime.llm.api import Completion, Token
from runtime.platform.handle import Done, Handle

routes = web.RouteTableDef()

Handles = Sequence[Handle[Completion]]


@routes.post("/v1/completions")
@speaks_openai
@takes(CompletionBody)
async def create(request: web.Request) -> web.StreamResponse:
    body = await json_body(request, CompletionBody)
    runtime = (await request.app[STARTUP].ready()).llm
    answer_id = requests.new_id("cmpl")
    asked = requests.complete(body, answer_id)
    handles = [cast("Handle[Completion]", runtime.submit(each)) for many in asked for each in many]
    async with while_listening(request, handles):
        if body.stream:
            return await send(request, _parts(body, answer_id, handles))
        answers = await asyncio.gather(*handles)
        choices = [
            shapes.text_choice(
                index,
                answer.text,
                None if body.logprobs is None else shapes.text_logprobs(answer.logprobs),
                answer.finish_reason,
            )
            for index, answer in enumerate(answers)
        ]
        frame = shapes.frame(answer_id, "text_completion", body.model)
        return web.json_response(frame.around(choices, usage=_usage(answers, body)))


async def _parts(body: CompletionBody, answer_id: str, handles: Handles) -> Parts:
    frame = shapes.frame(answer_id, "text_completion", body.model)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    nothing = {"usage": None} if with_usage else {}
    lengths = [0] * len(handles)
    async with aclosing(merged(handles)) as events:
        async for number, event in events:
            match event:
                case Token(text=text, logprobs=logprobs) if text or logprobs:
                    scores = None if logprobs is None else shapes.text_logprobs([logprobs], lengths[number])
                    lengths[number] += len(text)
                    yield frame.around([shapes.text_choice(number, text, scores)], **nothing)
                case Done(result=answer):
                    end = shapes.text_choice(number, "", finish=answer.finish_reason)
                    yield frame.around([end], **nothing)
    if with_usage:
        yield frame.around([], usage=_usage([await handle for handle in handles], body))


def _usage(answers: Sequence[Completion], body: CompletionBody) -> dict[str, Any]:
    """Answers come prompt after prompt."""
    many = body.n or 1
    return shapes.usage([answers[at : at + many] for at in range(0, len(answers), many)])
