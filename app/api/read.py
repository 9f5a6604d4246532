"""Requests into typed values: bodies through pydantic, queries by hand. Faults become BadRequest."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, NoReturn, TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiDictProxy
from pydantic import BaseModel, ValidationError

from app.errors import BadRequest

# a thread costs more than a body of this size
_LARGE = 64 * 1024

M = TypeVar("M", bound=BaseModel)


async def json_value(request: web.Request) -> Any:
    return await parsed(await request.read())


async def parsed(body: bytes) -> Any:
    """JSON without what JSON lacks."""
    try:
        if len(body) < _LARGE:
            return _loads(body)
        return await asyncio.to_thread(_loads, body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("The body is not valid JSON", type="invalid_json", details=str(error)) from None


async def json_body(
    request: web.Request, model: type[M], *, optional: bool = False, fault_type: str = "bad_request"
) -> M:
    """`optional` reads an empty body as an empty object."""
    if optional and not await request.read():
        return model()
    value = await json_value(request)
    if not isinstance(value, dict):
        raise BadRequest("The body should be a JSON object", type=fault_type)
    return validated(model, value, fault_type)


def validated(model: type[M], value: dict[str, Any], fault_type: str = "bad_request") -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in error.errors()
        ]
        raise BadRequest("The body has wrong values", type=fault_type, details="\n".join(faults)) from None


async def form(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    try:
        return await request.post()
    except (HttpProcessingError, ValueError, AssertionError) as error:
        raise BadRequest("The body is not a form that can be read", details=str(error)) from None


def query_int(request: web.Request, name: str, default: int | None = None) -> int | None:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise BadRequest(f"{name} must be an integer") from None
    if abs(value) >= 2**63:
        raise BadRequest(f"{name} is too large")
    return value


def query_seconds(request: web.Request, name: str) -> float | None:
    text = request.query.get(name)
    try:
        seconds = None if text is None else float(text)
    except ValueError:
        raise BadRequest(f"{name} must be a number of seconds") from None
    if seconds is not None and not 0 <= seconds < 1e9:
        raise BadRequest(f"{name} must be a number of seconds from 0 on")
    return seconds


def query_flag(request: web.Request, name: str, default: bool = False) -> bool:
    text = request.query.get(name)
    return default if text is None else text.lower() in ("true", "1", "yes")


def _loads(body: bytes) -> Any:
    return json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)


def _finite(text: str) -> float:
    """JSON has no infinity, but lets a number be written that only infinity can hold."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
