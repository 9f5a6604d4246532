"""/users and /settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from app.api.describe import takes
from app.api.read import json_body, json_value
from app.errors import BadRequest
from app.keys import USERS

routes = web.RouteTableDef()


class NewUser(BaseModel):
    username: str = ""


def user_id(request: web.Request) -> str | None:
    return request.headers.get("comfy-user") or None


def user_folder(request: web.Request) -> Path:
    """Blocking with several users, because their names are read."""
    return request.app[USERS].folder(user_id(request))


@routes.get("/users")
async def get_users(request: web.Request) -> web.Response:
    users = request.app[USERS]
    if users.multi:
        return web.json_response({"storage": "server", "users": await asyncio.to_thread(users.names)})
    return web.json_response({"storage": "server", "migrated": True})


@routes.post("/users")
@takes(NewUser)
async def add_user(request: web.Request) -> web.Response:
    body = await json_body(request, NewUser)
    try:
        return web.json_response(await asyncio.to_thread(request.app[USERS].add, body.username))
    except BadRequest as error:
        return web.json_response({"error": str(error)}, status=400)


@routes.get("/settings")
async def get_settings(request: web.Request) -> web.Response:
    return web.json_response(await _settings(request))


@routes.get("/settings/{id}")
async def get_setting(request: web.Request) -> web.Response:
    return web.json_response((await _settings(request)).get(request.match_info["id"]))


@routes.post("/settings")
@takes({"type": "object"})
async def change_settings(request: web.Request) -> web.Response:
    changes = await json_value(request)
    if not isinstance(changes, dict):
        raise BadRequest("The body should be a JSON object of settings")
    return await _change(request, changes)


@routes.post("/settings/{id}")
@takes({})
async def change_setting(request: web.Request) -> web.Response:
    return await _change(request, {request.match_info["id"]: await json_value(request)})


async def _settings(request: web.Request) -> dict[str, Any]:
    return await asyncio.to_thread(request.app[USERS].settings, user_id(request))


async def _change(request: web.Request, changes: dict[str, Any]) -> web.Response:
    await asyncio.to_thread(request.app[USERS].change_settings, user_id(request), changes)
    return web.Response()
