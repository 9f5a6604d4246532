"""/queue, /interrupt and /free: what waits and runs, and how to stop it."""

from __future__ import annotations

import asyncio

from aiohttp import web
from pydantic import BaseModel

from app.api.describe import takes
from app.api.read import json_body
from app.json_text import encode
from app.keys import JOBS

routes = web.RouteTableDef()


class QueueChange(BaseModel):
    clear: bool = False
    delete: list[str] = []


class Interruption(BaseModel):
    prompt_id: str | None = None


class Freeing(BaseModel):
    unload_models: bool = False
    free_memory: bool = False


@routes.get("/queue")
async def get_queue(request: web.Request) -> web.Response:
    jobs = request.app[JOBS]
    running = [job.as_json() for job in jobs.running()]
    pending = [job.as_json() for job in jobs.pending()]
    answer = {"queue_running": running, "queue_pending": pending}
    return web.Response(text=await asyncio.to_thread(encode, answer), content_type="application/json")


@routes.post("/queue")
@takes(QueueChange)
async def change_queue(request: web.Request) -> web.Response:
    change = await json_body(request, QueueChange)
    if change.clear:
        await request.app[JOBS].clear()
    await request.app[JOBS].delete(change.delete)
    return web.Response()


@routes.post("/interrupt")
@takes(Interruption, optional=True)
async def interrupt(request: web.Request) -> web.Response:
    wish = await json_body(request, Interruption, optional=True)
    request.app[JOBS].interrupt(wish.prompt_id)
    return web.Response()


@routes.post("/free")
@takes(Freeing, optional=True)
async def free(request: web.Request) -> web.Response:
    wish = await json_body(request, Freeing, optional=True)
    await request.app[JOBS].free(unload_models=wish.unload_models, drop_results=wish.free_memory)
    return web.Response()
