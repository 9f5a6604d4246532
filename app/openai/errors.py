"""Around every handler of the OpenAI protocol: faults take the form that its clients understand."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import wraps

from aiohttp import web

from app.errors import AppError, Unavailable, as_app_error, openai_body
from runtime.platform.handle import Cancelled

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def speaks_openai(handler: Handler) -> Handler:
    @wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge as error:
            fault = AppError(f"The body is larger than {error.text or 'allowed'}", type="too_large")
            return web.json_response(openai_body(fault), status=error.status)
        # whatever one request met must not take the server down
        except Exception as error:
            fault = known_fault(error)
            return web.json_response(openai_body(fault), status=fault.status)

    return answer


def known_fault(error: BaseException) -> AppError:
    """An error as the edge sees it; one that nobody foresaw is logged."""
    if isinstance(error, Cancelled):
        return Unavailable("The request was cancelled")
    known = as_app_error(error) if isinstance(error, Exception) else None
    if known is None:
        log.error("an OpenAI request failed", exc_info=error)
        known = AppError(f"The server met an unexpected {type(error).__name__}; its log says more")
    return known
