"""/history: what became of the prompts that ended."""

from __future__ import annotations

from aiohttp import web
from pydantic import BaseModel

from app.api.describe import INTEGER, takes
from app.api.read import json_body, query_int
from app.errors import BadRequest
from app.keys import HISTORY

routes = web.RouteTableDef()


class HistoryChange(BaseModel):
    clear: bool = False
    delete: list[str] = []


@routes.get("/history")
@takes(max_items=INTEGER, offset=INTEGER)
async def get_history(request: web.Request) -> web.Response:
    max_items = query_int(request, "max_items")
    if max_items is not None and max_items < 0:
        raise BadRequest("max_items must not be negative")
    offset = query_int(request, "offset", -1)
    text = await request.app[HISTORY].newest(max_items, -1 if offset is None else offset)
    return web.Response(text=text, content_type="application/json")


@routes.get("/history/{prompt_id}")
async def get_item(request: web.Request) -> web.Response:
    prompt_id = request.match_info["prompt_id"]
    item = await request.app[HISTORY].item(prompt_id)
    return web.json_response({} if item is None else {prompt_id: item})


@routes.post("/history")
@takes(HistoryChange)
async def change_history(request: web.Request) -> web.Response:
    change = await json_body(request, HistoryChange)
    if change.clear:
        await request.app[HISTORY].clear()
    await request.app[HISTORY].delete(change.delete)
    return web.Response()
