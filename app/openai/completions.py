"""POST /v1/completions: prompts continued as they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from aiohttp import web

from app.api.describe import takes
from app.api.read import json_body
from app.errors import BadRequest
from app.keys import STARTUP
from app.openai import requests, shapes
from app.openai.errors import speaks_openai
from app.openai.shapes import Json
from app.openai.stream import Parts, merged, send, while_listening
from app.openai.types import CompletionBody
from runtime.llm.api import Completion, LanguageRuntime, Token, Tokenized, TokenizeRequest
from runtime.platform.handle import Done, Handle

routes = web.RouteTableDef()

Handles = Sequence[Handle[Completion]]


@routes.post("/v1/completions")
@speaks_openai
@takes(CompletionBody)
async def create(request: web.Request) -> web.StreamResponse:
    body = await json_body(request, CompletionBody)
    if body.stream and body.echo and body.logprobs is not None:
        raise BadRequest("echo with logprobs cannot be streamed")
    runtime = (await request.app[STARTUP].ready()).llm
    answer_id = requests.new_id("cmpl")
    asked = requests.complete(body, answer_id)
    handles = [cast("Handle[Completion]", runtime.submit(each)) for many in asked for each in many]
    async with while_listening(request, handles):
        echoed = await _echoed(runtime, body) if body.echo else []
        if body.stream:
            return await send(request, _parts(body, answer_id, handles, echoed))
        answers = await asyncio.gather(*handles)
        many = body.n or 1
        choices = [
            _choice(body, index, answer, echoed[index // many] if echoed else None)
            for index, answer in enumerate(answers)
        ]
        frame = shapes.frame(answer_id, "text_completion", body.model)
        return web.json_response(frame.around(choices, usage=_usage(answers, body)))


async def _echoed(runtime: LanguageRuntime, body: CompletionBody) -> list[Tokenized]:
    """Each prompt's tokens, which also say what the text of a prompt of ids is."""
    asked = [
        TokenizeRequest(requests.new_id("tokens"), body.model, prompt)
        for prompt in requests.prompts(body.prompt)
    ]
    return await asyncio.gather(*(cast("Handle[Tokenized]", runtime.submit(each)) for each in asked))


def _choice(body: CompletionBody, index: int, answer: Completion, echoed: Tokenized | None) -> Json:
    scores = None if body.logprobs is None else shapes.text_logprobs(answer.logprobs)
    text = answer.text
    if echoed is not None:
        # a prompt alone is scored beside a token that nobody asked for
        is_alone = body.max_tokens == 0
        before = shapes.echoed_text(echoed)
        text = before + ("" if is_alone else text)
        if scores is not None:
            prompt = shapes.prompt_text_logprobs(echoed, answer.prompt_logprobs)
            rest = () if is_alone else answer.logprobs
            scores = shapes.joined(prompt, shapes.text_logprobs(rest, len(before)))
    return {
        **shapes.text_choice(index, text, scores, answer.finish_reason),
        **shapes.matched_stop(answer),
        **shapes.token_ids(answer, body.return_token_ids),
        **shapes.prompt_ids([[answer]], body.return_token_ids),
        **shapes.prompt_logprobs(answer, body.prompt_logprobs is not None),
    }


async def _parts(
    body: CompletionBody, answer_id: str, handles: Handles, echoed: Sequence[Tokenized]
) -> Parts:
    frame = shapes.frame(answer_id, "text_completion", body.model)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    nothing = {"usage": None} if with_usage else {}
    lengths = [0] * len(handles)
    many = body.n or 1
    for number in range(len(handles) if echoed else 0):
        before = shapes.text_choice(number, shapes.echoed_text(echoed[number // many]))
        yield frame.around([before], **nothing)
    async with aclosing(merged(handles)) as events:
        async for number, event in events:
            match event:
                case Token() if body.max_tokens != 0 and (choice := _delta(body, number, event, lengths)):
                    yield frame.around([choice], **nothing)
                case Done(result=answer):
                    end = shapes.text_choice(number, "", finish=answer.finish_reason)
                    yield frame.around([{**end, **shapes.matched_stop(answer)}], **nothing)
    if with_usage:
        yield frame.around([], usage=_usage([await handle for handle in handles], body))


def _delta(body: CompletionBody, number: int, token: Token, lengths: list[int]) -> Json | None:
    """`lengths` are those of the texts so far, which go on."""
    if not (token.text or token.logprobs or body.return_token_ids):
        return None
    scores = None if token.logprobs is None else shapes.text_logprobs([token.logprobs], lengths[number])
    lengths[number] += len(token.text)
    ids = {"token_ids": [token.token_id]} if body.return_token_ids else {}
    return {**shapes.text_choice(number, token.text, scores), **ids}


def _usage(answers: Sequence[Completion], body: CompletionBody) -> dict[str, Any]:
    """Answers come prompt after prompt."""
    many = body.n or 1
    return shapes.usage([answers[at : at + many] for at in range(0, len(answers), many)])
