"""/api/assets/seed and /api/assets/prune: bring the assets in step with the disk."""

from __future__ import annotations

from typing import Literal

from aiohttp import web
from pydantic import BaseModel

from app.api.asset_faults import AssetFault, speaks_assets
from app.api.describe import FLAG, takes
from app.api.read import json_body, query_flag
from app.assets.places import ROLES
from app.keys import CATALOG

routes = web.RouteTableDef()


class SeedBody(BaseModel):
    roots: list[Literal["input", "models", "output"]] = list(ROLES)  # type: ignore[arg-type]


@routes.post("/api/assets/seed")
@takes(SeedBody, optional=True, wait=FLAG)
@speaks_assets
async def seed(request: web.Request) -> web.Response:
    """Registers what lies in the folders; with `wait` the answer comes when that is done."""
    body = await json_body(request, SeedBody, optional=True)
    scan = request.app[CATALOG].scan
    if scan.is_running:
        raise AssetFault(409, "SCAN_RUNNING", "A scan is running already")
    scan.begin(body.roots)
    if not query_flag(request, "wait"):
        return web.json_response({"status": "started"})
    await scan.ended()
    return web.json_response({"status": "completed", **scan.status()})


@routes.get("/api/assets/seed/status")
@speaks_assets
async def seed_status(request: web.Request) -> web.Response:
    return web.json_response(request.app[CATALOG].scan.status())


@routes.post("/api/assets/seed/cancel")
@speaks_assets
async def cancel_seed(request: web.Request) -> web.Response:
    return web.json_response({"status": "cancelling" if request.app[CATALOG].scan.cancel() else "idle"})


@routes.post("/api/assets/prune")
@speaks_assets
async def prune(request: web.Request) -> web.Response:
    """Marks assets whose files are gone."""
    scan = request.app[CATALOG].scan
    if scan.is_running:
        raise AssetFault(409, "SCAN_RUNNING", "A scan is running already")
    return web.json_response({"status": "completed", "marked": await scan.prune()})
