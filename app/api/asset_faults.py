"""Around every handler of the assets API: faults take the form that its clients read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from aiohttp import web

from app.errors import AppError, as_app_error

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_CODES = {"bad_request": "INVALID_BODY", "invalid_json": "INVALID_JSON"}


class AssetFault(AppError):
    """`code` is for programs; `details` may be a whole object here."""

    def __init__(self, status: int, code: str, text: str, **details: Any) -> None:
        super().__init__(text, type=code)
        self.status = status
        self.more = details


def invalid_query(text: str) -> AssetFault:
    return AssetFault(400, "INVALID_QUERY", text)


def invalid_body(text: str) -> AssetFault:
    return AssetFault(400, "INVALID_BODY", text)


def no_asset(asset_id: str) -> AssetFault:
    return AssetFault(404, "ASSET_NOT_FOUND", f"There is no asset {asset_id}", id=asset_id)


def speaks_assets(handler: Handler) -> Handler:
    @wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge as error:
            return _refusal(
                AssetFault(413, "TOO_LARGE", "The upload is larger than --max-upload-size", said=error.text)
            )
        except web.HTTPException:
            raise
        # whatever one request met must not take the server down
        except Exception as error:
            known = as_app_error(error)
            if known is None:
                log.exception("%s %s failed", request.method, request.path)
                known = AppError(f"The server met an unexpected {type(error).__name__}; its log says more")
            return _refusal(known)

    return answer


def _refusal(error: AppError) -> web.Response:
    code = _CODES.get(error.type, error.type).upper()
    details = error.more if isinstance(error, AssetFault) else {"text": error.details}
    body = {"error": {"code": code, "message": str(error), "details": details}}
    return web.json_response(body, status=error.status)
