"""/api/assets and /api/tags: files as assets with names, tags and metadata, when --enable-assets is given.

Only below /api, because /assets are files of the editor.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from app.api.asset_faults import AssetFault, invalid_body, invalid_query, no_asset, speaks_assets
from app.api.asset_queries import (
    TagList,
    filters_of,
    number,
    owner_of,
    plain_tags,
    text,
    window_of,
)
from app.api.asset_shapes import as_json
from app.api.content import disposition, guess_type, is_script
from app.api.describe import FLAG, INTEGER, STRING, takes
from app.api.read import json_body, query_flag
from app.assets.filters import InvalidCursor
from app.assets.rows import Asset, is_hash
from app.assets.tags import TAG_ORDERS
from app.errors import NotFound
from app.keys import CATALOG, HISTORY, JOBS

routes = web.RouteTableDef()
disabled_routes = web.RouteTableDef()

_NOBODY = "00000000-0000-0000-0000-000000000000"
_MIME_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


class AssetChanges(BaseModel):
    name: str | None = None
    mime_type: str | None = None
    preview_id: str | None = None
    user_metadata: dict[str, Any] | None = None


@disabled_routes.route("*", "/api/assets")
@disabled_routes.route("*", "/api/assets/{path:.+}")
@disabled_routes.route("*", "/api/tags")
async def refuse(_request: web.Request) -> web.Response:
    """The feature flag `assets` is false, and this is what a client finds that asks all the same."""
    said = (
        "This server keeps no assets without --enable-assets; /upload/image, /view and /userdata always work."
    )
    error = {"code": "SERVICE_DISABLED", "message": said, "details": {}}
    return web.json_response({"error": error}, status=503)


@routes.get("/api/assets")
@takes(
    tags_all=STRING,
    tags_any=STRING,
    tags_none=STRING,
    include_tags=STRING,
    exclude_tags=STRING,
    name_contains=STRING,
    metadata_filter=STRING,
    include_public=FLAG,
    hash=STRING,
    limit=INTEGER,
    offset=INTEGER,
    after=STRING,
    sort=STRING,
    order=STRING,
)
@speaks_assets
async def list_assets(request: web.Request) -> web.Response:
    catalog = request.app[CATALOG]
    try:
        listing = await catalog.assets.listed(await filters_of(request), window_of(request))
    except InvalidCursor as error:
        raise AssetFault(400, "INVALID_CURSOR", str(error)) from None
    shapes = await asyncio.to_thread(lambda: [as_json(asset, catalog.places) for asset in listing.assets])
    answer = {"assets": shapes, "total": listing.total, "has_more": listing.has_more}
    return web.json_response(answer if listing.cursor is None else {**answer, "next_cursor": listing.cursor})


@routes.get("/jobs/{id}/assets")
@takes(limit=INTEGER, offset=INTEGER)
@speaks_assets
async def list_assets_of_job(request: web.Request) -> web.Response:
    job_id, catalog = request.match_info["id"], request.app[CATALOG]
    if request.app[JOBS].state(job_id) is None and await request.app[HISTORY].item(job_id) is None:
        raise NotFound(f"There is no job {job_id}")
    filters = await filters_of(request, job_id)
    listing = await catalog.assets.listed(filters, window_of(request))
    shapes = await asyncio.to_thread(lambda: [as_json(asset, catalog.places) for asset in listing.assets])
    return web.json_response({"assets": shapes, "total": listing.total, "has_more": listing.has_more})


@routes.head("/api/assets/hash/{hash}")
@speaks_assets
async def has_hash(request: web.Request) -> web.Response:
    hash = request.match_info["hash"]
    if not is_hash(hash):
        raise AssetFault(400, "INVALID_HASH", "A hash is blake3: and 64 hexadecimal digits")
    return web.Response(status=404 if await request.app[CATALOG].file_with(hash) is None else 200)


@routes.get("/api/assets/tags/refine")
@takes(
    tags_all=STRING,
    tags_any=STRING,
    tags_none=STRING,
    include_tags=STRING,
    exclude_tags=STRING,
    name_contains=STRING,
    metadata_filter=STRING,
    include_public=FLAG,
    hash=STRING,
    limit=INTEGER,
)
@speaks_assets
async def refine_tags(request: web.Request) -> web.Response:
    """How often each tag is worn by the assets that the filters let through."""
    limit = number(request, "limit", 100, 1, 1000)
    counted = await request.app[CATALOG].tags.counts(
        await filters_of(request), "", with_unused=False, order="count_desc", limit=limit, offset=0
    )
    return web.json_response({"tag_counts": dict(counted.counts)})


@routes.get("/api/tags")
@takes(prefix=STRING, limit=INTEGER, offset=INTEGER, order=STRING, include_zero=FLAG, include_public=FLAG)
@speaks_assets
async def list_tags(request: web.Request) -> web.Response:
    limit, offset = number(request, "limit", 100, 1, 1000), number(request, "offset", 0, 0, 2**62)
    order = request.query.get("order", "count_desc")
    if order not in TAG_ORDERS:
        raise invalid_query(f"order should be one of {', '.join(TAG_ORDERS)}")
    counted = await request.app[CATALOG].tags.counts(
        await filters_of(request),
        text(request, "prefix"),
        with_unused=query_flag(request, "include_zero", default=True),
        order=order,
        limit=limit,
        offset=offset,
    )
    tags = [{"name": name, "count": count} for name, count in counted.counts.items()]
    answer = {"tags": tags, "total": counted.total, "has_more": offset + len(tags) < counted.total}
    return web.json_response(answer)


@routes.get("/api/assets/{id}")
@speaks_assets
async def get_asset(request: web.Request) -> web.Response:
    return await _shown(request, await _asset(request))


@routes.put("/api/assets/{id}")
@takes(AssetChanges)
@speaks_assets
async def change_asset(request: web.Request) -> web.Response:
    changes = await json_body(request, AssetChanges)
    given = changes.model_dump(exclude_none=True)
    if not given:
        raise invalid_body("At least one of name, mime_type, preview_id and user_metadata should be given")
    metadata = given.pop("user_metadata", None)
    check_mime_type(changes.mime_type)
    owner = await owner_of(request)
    await check_preview(request, owner, changes.preview_id)
    asset = await request.app[CATALOG].assets.change(request.match_info["id"], owner, given, metadata)
    if asset is None:
        raise no_asset(request.match_info["id"])
    return await _shown(request, asset)


@routes.delete("/api/assets/{id}")
@speaks_assets
async def delete_asset(request: web.Request) -> web.Response:
    """Its file stays where it is."""
    asset_id = request.match_info["id"]
    if not await request.app[CATALOG].assets.delete(asset_id, await owner_of(request)):
        raise no_asset(asset_id)
    return web.Response(status=204)


@routes.get("/api/assets/{id}/content")
@takes(disposition={"type": "string", "enum": ["inline", "attachment"]})
@speaks_assets
async def get_content(request: web.Request) -> web.StreamResponse:
    asset = await _asset(request)
    path = None if asset.file is None else Path(asset.file)
    if path is None or not await asyncio.to_thread(path.is_file):
        raise AssetFault(404, "FILE_NOT_FOUND", f"The file of asset {asset.id} is gone")
    await request.app[CATALOG].assets.touch(asset.id)
    kind = "inline" if request.query.get("disposition") == "inline" else "attachment"
    content_type = asset.mime_type or guess_type(path)
    headers = {"X-Content-Type-Options": "nosniff"}
    if is_script(content_type) or is_script(guess_type(path)):
        kind, content_type = "attachment", "application/octet-stream"
    headers |= {"Content-Type": content_type, **disposition(asset.name, f"{kind}; ")}
    return web.FileResponse(path, headers=headers)


@routes.post("/api/assets/{id}/tags")
@takes(TagList)
@speaks_assets
async def add_tags(request: web.Request) -> web.Response:
    body = await json_body(request, TagList)
    asset_id, owner = request.match_info["id"], await owner_of(request)
    change = await request.app[CATALOG].tags.add(asset_id, owner, plain_tags(body.tags))
    if change is None:
        raise no_asset(asset_id)
    answer = {"added": change.done, "already_present": change.idle, "total_tags": change.total}
    return web.json_response(answer)


@routes.delete("/api/assets/{id}/tags")
@takes(TagList)
@speaks_assets
async def remove_tags(request: web.Request) -> web.Response:
    body = await json_body(request, TagList)
    asset_id, owner = request.match_info["id"], await owner_of(request)
    change = await request.app[CATALOG].tags.remove(asset_id, owner, plain_tags(body.tags))
    if change is None:
        raise no_asset(asset_id)
    answer = {"removed": change.done, "not_present": change.idle, "total_tags": change.total}
    return web.json_response(answer)


def check_mime_type(text: str | None) -> None:
    if text is not None and _MIME_TYPE.fullmatch(text) is None:
        raise invalid_body("mime_type should look like image/png")


async def check_preview(request: web.Request, owner: str, preview_id: str | None) -> None:
    if preview_id == _NOBODY:
        raise AssetFault(400, "INVALID_PREVIEW_ID", "preview_id names no asset")
    if preview_id is not None and await request.app[CATALOG].assets.find(preview_id, owner) is None:
        raise no_asset(preview_id)


async def _asset(request: web.Request) -> Asset:
    asset_id = request.match_info["id"]
    asset = await request.app[CATALOG].assets.find(asset_id, await owner_of(request))
    if asset is None:
        raise no_asset(asset_id)
    return asset


async def _shown(request: web.Request, asset: Asset) -> web.Response:
    return web.json_response(as_json(asset, request.app[CATALOG].places))
