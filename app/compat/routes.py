"""Routes and middlewares of packs. They come after the server has started, so they live in an application of
their own.

The server's own routes go first; what nobody answers is asked here, plain and below /api. Middlewares of
packs see every request, so that a pack can ask for a login.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PackRoutes(web.RouteTableDef):
    """`@routes.get("/x")` works at once. `app` is what packs see as the application."""

    def __init__(self) -> None:
        super().__init__()
        self.app = web.Application()

    def route(self, method: str, path: str, **kwargs: Any) -> Callable[[Any], Any]:
        note = super().route(method, path, **kwargs)

        def register(handler: Any) -> Any:
            note(handler)
            self._register_last()
            return handler

        return register

    def static(self, prefix: str, path: Any, **kwargs: Any) -> None:
        super().static(prefix, path, **kwargs)
        self._register_last()

    async def answer(self, request: web.Request) -> web.StreamResponse | None:
        """None when no pack has such a route."""
        match = await self.app.router.resolve(request)
        if match.http_exception is not None:
            return None
        match.add_app(request.app)
        # as aiohttp's own path middleware hands a request on
        own = request.clone()
        own._match_info = match
        try:
            return await match.handler(own)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"a pack's route raised {type(error).__name__}") from error

    def _register_last(self) -> None:
        definition = self[len(self) - 1]
        try:
            definition.register(self.app.router)
        except (RuntimeError, ValueError) as error:
            log.warning("a pack's route is left out: %s", error)


PACK_ROUTES = web.AppKey("pack_routes", PackRoutes)


@web.middleware
async def packs_around_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The middlewares that packs have added, the first of them outermost, as aiohttp has its own."""
    for middleware in reversed(request.app[PACK_ROUTES].app.middlewares):
        handler = functools.partial(middleware, handler=handler)
    try:
        return await handler(request)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"a pack's middleware raised {type(error).__name__}") from error


@web.middleware
async def packs_after_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The innermost middleware: packs answer what the server has no route for."""
    own = request.match_info
    if own.http_exception is None and own.route.resource is not None and not _is_catch_all(own):
        return await handler(request)
    routes = request.app[PACK_ROUTES]
    response = await routes.answer(request)
    if response is None and request.path.startswith("/api/"):
        shorter = request.rel_url.with_path(request.rel_url.path.removeprefix("/api"), keep_query=True)
        response = await routes.answer(request.clone(rel_url=shorter))
    return await handler(request) if response is None else response


def _is_catch_all(match: web.UrlMappingMatchInfo) -> bool:
    resource = match.route.resource
    return resource is not None and resource.canonical == "/{path}"
