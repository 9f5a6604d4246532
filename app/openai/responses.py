"""/v1/responses: answers as items, which a later question may go on with by their id."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from aiohttp import web

from app.api.describe import takes
from app.api.read import json_body
from app.openai import requests, response_messages
from app.openai.ask import Handles, ask
from app.openai.errors import speaks_openai
from app.openai.response_shapes import ResponseWriter
from app.openai.response_store import RESPONSES, ResponseStore, Stored
from app.openai.response_types import ResponseBody
from app.openai.stream import Parts, merged, send, while_listening
from app.openai.types import ChatMessage
from runtime.llm.api import Completion
from runtime.platform.handle import Done

routes = web.RouteTableDef()


@routes.post("/v1/responses")
@speaks_openai
@takes(ResponseBody)
async def create(request: web.Request) -> web.StreamResponse:
    body = await json_body(request, ResponseBody)
    store = request.app[RESPONSES]
    previous = body.previous_response_id
    earlier = () if previous is None else store.get(previous).conversation
    answer_id = requests.new_id("resp").replace("-", "_")
    asked = await ask(request, response_messages.chat_body(body, earlier), answer_id)
    writer = ResponseWriter(body, answer_id, asked.has_schema)
    async with while_listening(request, asked.handles):
        parts = _parts(writer, asked.handles, store, earlier)
        if body.stream:
            return await send(request, parts, ends_with=None)
        last = [part async for part in parts][-1]
        return web.json_response(last["response"])


@routes.get("/v1/responses/{id}")
@speaks_openai
async def show(request: web.Request) -> web.Response:
    return web.json_response(request.app[RESPONSES].get(request.match_info["id"]).response)


@routes.delete("/v1/responses/{id}")
@speaks_openai
async def delete(request: web.Request) -> web.Response:
    response_id = request.match_info["id"]
    request.app[RESPONSES].delete(response_id)
    return web.json_response({"id": response_id, "object": "response", "deleted": True})


async def _parts(
    writer: ResponseWriter, handles: Handles, store: ResponseStore, earlier: Sequence[ChatMessage]
) -> Parts:
    """What fails before the first event fails the request; so nothing is said before that."""
    has_begun = False
    async with aclosing(merged(handles)) as events:
        async for _, event in events:
            for part in writer.begin() if not has_begun else ():
                yield part
            has_begun = True
            parts = list(writer.write(event))
            if isinstance(event, Done) and writer.body.store is not False:
                # known before its end is told, so that the next question can follow at once
                _remember(store, parts[-1]["response"], writer.body, earlier, event.result)
            for part in parts:
                yield part


def _remember(
    store: ResponseStore,
    response: dict[str, object],
    body: ResponseBody,
    earlier: Sequence[ChatMessage],
    answer: Completion,
) -> None:
    asked = response_messages.messages(body.input)
    store.put(Stored(response, [*earlier, *asked, response_messages.said(answer)]))
