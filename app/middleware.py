"""What happens around every handler: errors become JSON, foreign origins are refused, caching is stated."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from app.errors import Forbidden, as_app_error, error_body, to_response

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
_CACHED_FOR_A_DAY = frozenset({200, 201, 202, 203, 204, 205, 206, 301, 308})
_COMPRESSED = ("application/json", "text/")


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or error.content_type == "application/json":
            raise
        text = f"{error.status}: {error.reason}"
        response = web.json_response(error_body(_type_of(error.status), text), status=error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    # whatever one request met must not take the server down
    except Exception as error:
        known = as_app_error(error)
        if known is not None:
            return to_response(known)
        log.exception("%s %s failed", request.method, request.path)
        text = f"The server met an unexpected {type(error).__name__}; its log says more"
        return web.json_response(error_body("server_error", text), status=500)


@web.middleware
async def cache_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    if response.prepared or "Cache-Control" in response.headers:
        return response
    path = request.path.lower()
    name = path.rsplit("/", 1)[-1]
    if path.endswith((".js", ".css")) or (name.startswith("index") and name.endswith(".json")):
        response.headers["Cache-Control"] = "no-store"
    elif path.endswith(_IMAGES):
        response.headers["Cache-Control"] = _image_caching(response.status)
    return response


@web.middleware
async def compress(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    is_plain = isinstance(response, web.Response) and "Content-Encoding" not in response.headers
    if is_plain and response.content_type.startswith(_COMPRESSED):
        response.enable_compression()
    return response


def allow_origin(origin: str) -> Middleware:
    """Sites of `origin` may use this server from a browser."""

    @web.middleware
    async def cors(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = web.Response() if request.method == "OPTIONS" else await handler(request)
        if not response.prepared:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Allow-Methods"] = "POST, GET, DELETE, PUT, OPTIONS, PATCH"
            response.headers["Access-Control-Allow-Headers"] = "Content-Type, Authorization"
            response.headers["Access-Control-Allow-Credentials"] = "true"
        return response

    return cors


@web.middleware
async def guard_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A page of another site must not reach a server on the user's own machine."""
    if request.method == "OPTIONS":
        return web.Response()
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        return to_response(Forbidden("Requests from other sites are refused; see --enable-cors-header"))
    origin = request.headers.get("Origin")
    if origin and _is_loopback(request.host) and not _is_same_origin(request.host, origin):
        return to_response(Forbidden(f"Origin {origin} is not this server; see --enable-cors-header"))
    return await handler(request)


def _is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_same_origin(host: str, origin: str) -> bool:
    try:
        ours, theirs = urlsplit(f"//{host}"), urlsplit(origin)
        same_port = None in (ours.port, theirs.port) or ours.port == theirs.port
    except ValueError:
        return False
    return ours.hostname == theirs.hostname and same_port


def _image_caching(status: int) -> str:
    if status in _CACHED_FOR_A_DAY:
        return "public, max-age=86400"
    return "public, max-age=3600" if status == 404 else "no-cache"


def _type_of(status: int) -> str:
    return {404: "not_found", 405: "method_not_allowed", 413: "too_large"}.get(status, "bad_request")
