"""What a handler takes, said beside it, for the description of the API. It changes nothing that happens."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel

Schema = Mapping[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
H = TypeVar("H", bound=Handler)

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
UPLOAD: Schema = {"type": "string", "format": "binary"}


@dataclass(frozen=True, slots=True)
class Takes:
    """`body` is the model that validates it, or a schema where the handler reads it by hand."""

    body: type[BaseModel] | Schema | None = None
    content_type: str = "application/json"
    is_body_required: bool = True
    query: Mapping[str, Schema] = field(default_factory=dict)


_taken: dict[Handler, Takes] = {}


def takes(
    body: type[BaseModel] | Schema | None = None,
    content_type: str = "application/json",
    optional: bool = False,
    **query: Schema,
) -> Callable[[H], H]:
    def note(handler: H) -> H:
        _taken[inspect.unwrap(handler)] = Takes(body, content_type, not optional, query)
        return handler

    return note


def taken_by(handler: Handler) -> Takes:
    """Also when something is wrapped around it."""
    return _taken.get(inspect.unwrap(handler), Takes())
