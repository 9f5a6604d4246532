"""/internal/logs: what the server said lately, and a subscription to what it says next."""

from __future__ import annotations

from aiohttp import web
from pydantic import BaseModel

from app.api.describe import takes
from app.api.read import json_body
from app.keys import LOGS
from app.logs import SIZE

routes = web.RouteTableDef()


class Subscription(BaseModel):
    clientId: str
    enabled: bool = True


@routes.get("/internal/logs")
async def get_text(request: web.Request) -> web.Response:
    lines = (f"{entry['t']} - {entry['m']}" for entry in request.app[LOGS].entries())
    return web.json_response("".join(lines))


@routes.get("/internal/logs/raw")
async def get_entries(request: web.Request) -> web.Response:
    return web.json_response({"entries": request.app[LOGS].entries(), "size": SIZE})


@routes.patch("/internal/logs/subscribe")
@takes(Subscription)
async def subscribe(request: web.Request) -> web.Response:
    wish = await json_body(request, Subscription)
    request.app[LOGS].subscribe(wish.clientId, wish.enabled)
    return web.Response()
