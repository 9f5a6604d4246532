"""What goes wrong at the edge, and the form of each in HTTP and in the OpenAI protocol.

AppError
  BadRequest    400  the client can correct it
  Forbidden     403  a name that leaves its folder, a foreign origin
  NotFound      404
  Conflict      409  it exists already
  Unavailable   503  starting failed, the server is closing, or a process that it needs is away
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from app.files import UnsafeName
from nodes.context import NodeInputError
from runtime.platform.errors import MissingFile, RuntimeFault, Unreachable


class AppError(Exception):
    status = 500
    type = "server_error"

    def __init__(self, text: str, *, type: str | None = None, details: str = "") -> None:
        super().__init__(text)
        self.details = details
        if type is not None:
            self.type = type


class BadRequest(AppError):
    status = 400
    type = "bad_request"


class Forbidden(AppError):
    status = 403
    type = "forbidden"


class NotFound(AppError):
    status = 404
    type = "not_found"


class Conflict(AppError):
    status = 409
    type = "conflict"


class Unavailable(AppError):
    status = 503
    type = "unavailable"


def as_app_error(error: Exception) -> AppError | None:
    """The edge's view of an error from below, or None for one that nobody foresaw."""
    match error:
        case AppError():
            return error
        case UnsafeName():
            return Forbidden(str(error))
        case MissingFile():
            return NotFound(str(error))
        case Unreachable():
            return Unavailable(str(error))
        case NodeInputError() | RuntimeFault():
            return BadRequest(str(error))
        case _:
            return None


def error_body(
    type: str, text: str, details: str = "", extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The form of `POST /prompt`, which every client of this protocol can show."""
    return {
        "error": {"type": type, "message": text, "details": details, "extra_info": dict(extra or {})},
        "node_errors": {},
    }


def openai_body(error: AppError) -> dict[str, Any]:
    """The form that clients of the OpenAI protocol raise their exceptions from."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    code = "model_not_found" if isinstance(error, NotFound) else None
    text = f"{error}: {error.details}" if error.details else str(error)
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


def to_response(error: AppError) -> web.Response:
    return web.json_response(error_body(error.type, str(error), error.details), status=error.status)
