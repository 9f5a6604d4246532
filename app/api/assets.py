"""/api/assets and /api/tags: this server keeps no assets, and says so in the words that their clients read.

Only below /api, because /assets are files of the editor.
"""

from __future__ import annotations

from aiohttp import web

routes = web.RouteTableDef()


@routes.route("*", "/api/assets")
@routes.route("*", "/api/assets/{path:.+}")
@routes.route("*", "/api/tags")
async def refuse(_request: web.Request) -> web.Response:
    """The feature flag `assets` is false, and this is what a client finds that asks all the same."""
    text = "This server keeps no assets. Use /upload/image, /view and /userdata instead."
    error = {"code": "SERVICE_DISABLED", "message": text, "details": {}}
    return web.json_response({"error": error}, status=503)
