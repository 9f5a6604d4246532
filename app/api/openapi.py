"""/openapi.json: the API described for programs, from the routes and the models that validate."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from app.api.describe import Takes, taken_by

DOCUMENT = web.AppKey("openapi", dict[str, Any])
routes = web.RouteTableDef()

_ABOUT = "Every path but those of /internal also exists below /api."
_MODELS = "#/components/schemas/{model}"


class Fault(BaseModel):
    """`type` is for programs, `message` for people."""

    type: str
    message: str
    details: str
    extra_info: dict[str, Any]


class AssetFault(BaseModel):
    """What /api/assets says: `code` is for programs."""

    code: str
    message: str
    details: dict[str, Any]


class Refusal(BaseModel):
    """The body of every answer from 400 on, except for the one-line errors of /jobs and /users."""

    error: Fault | AssetFault | str
    node_errors: dict[str, Any] = {}


@routes.get("/openapi.json")
async def document(request: web.Request) -> web.Response:
    return web.json_response(request.app[DOCUMENT])


def described(definitions: Iterable[web.RouteDef], version: str) -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    refusal = {"$ref": _schema_of(Refusal, schemas)}
    paths: dict[str, dict[str, Any]] = {}
    for route in definitions:
        # a pattern in a route's path is its own affair
        path = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, schemas, refusal)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Treadle",
            "version": version,
            "description": _ABOUT,
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(
    route: web.RouteDef, path: str, schemas: dict[str, Any], refusal: dict[str, Any]
) -> dict[str, Any]:
    takes = taken_by(route.handler)
    module = route.handler.__module__.rpartition(".")[2]
    name = route.handler.__name__
    named = [
        {"name": part, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for part in re.findall(r"\{(\w+)\}", path)
    ]
    asked = [{"name": part, "in": "query", "schema": schema} for part, schema in takes.query.items()]
    operation = {
        "operationId": f"{module}.{name}.{route.method.lower()}",
        "tags": [module],
        "summary": (inspect.getdoc(route.handler) or name.replace("_", " ").capitalize()).split("\n")[0],
        "parameters": named + asked,
        "responses": {
            "2XX": {"description": "Done"},
            "304": {"description": "Not changed"},
            "4XX": {"description": "Refused", "content": {"application/json": {"schema": refusal}}},
            "503": {"description": "Loading failed", "content": {"application/json": {"schema": refusal}}},
        },
    }
    if takes.body is not None:
        operation["requestBody"] = _body(takes, schemas)
    return operation


def _body(takes: Takes, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = takes.body
    if isinstance(schema, type):
        schema = {"$ref": _schema_of(schema, schemas)}
    return {"required": takes.is_body_required, "content": {takes.content_type: {"schema": schema}}}


def _schema_of(model: type[BaseModel], schemas: dict[str, Any]) -> str:
    schema = model.model_json_schema(ref_template=_MODELS)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return _MODELS.format(model=model.__name__)
