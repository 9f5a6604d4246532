"""What a request that brings a graph may look like, read into one form.

A JSON body, a picture, or a form with one of them as a file; in it a prompt, or an editor's workflow.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from app.api.read import form, parsed, validated
from app.carried import CarriesNothing, carried, is_picture
from app.errors import BadRequest
from app.workflow.schema import is_workflow

_FAULT = "invalid_prompt"


class PromptBody(BaseModel):
    """`prompt` stays plain JSON here: app.graph judges it, node by node. Packs may add fields."""

    model_config = ConfigDict(extra="allow")

    prompt: dict[str, Any] | None = None
    client_id: str | None = None
    prompt_id: str | None = None
    extra_data: dict[str, Any] | None = None
    front: bool = False
    number: float | None = Field(default=None, allow_inf_nan=False)
    partial_execution_targets: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """`workflow` is the editor's document, if there is one; without `body.prompt` it is to be converted."""

    body: PromptBody
    workflow: dict[str, Any] | None


async def posted(request: web.Request) -> Posted:
    if request.content_type == "multipart/form-data":
        data, fields = await _form(request)
    else:
        data, fields = await request.read(), {}
    if is_picture(data):
        try:
            found = await asyncio.to_thread(carried, data)
        except CarriesNothing as error:
            raise BadRequest(str(error), type=_FAULT) from None
        return Posted(validated(PromptBody, {**fields, "prompt": found.prompt}, _FAULT), found.workflow)
    value = await parsed(data)
    if not isinstance(value, dict):
        raise BadRequest("The body should be a JSON object", type=_FAULT)
    return _of_json({**_with_prompt(value), **fields})


def _with_prompt(value: dict[str, Any]) -> dict[str, Any]:
    """A workflow or an exported prompt may also be the body itself."""
    if "prompt" in value or not (is_workflow(value) or _is_api_prompt(value)):
        return value
    return {"prompt": value}


def _is_api_prompt(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(isinstance(node, dict) and "class_type" in node for node in value.values())


def _of_json(value: dict[str, Any]) -> Posted:
    if not isinstance(value.get("prompt_id"), str | None):
        raise BadRequest("prompt_id must be a valid UUID", type="invalid_prompt_id")
    body = validated(PromptBody, value, _FAULT)
    if is_workflow(body.prompt):
        return Posted(body.model_copy(update={"prompt": None}), body.prompt)
    return Posted(body, None)


async def _form(request: web.Request) -> tuple[bytes, dict[str, Any]]:
    """The file, and the other fields as a JSON body would have them."""
    sent = await form(request)
    files = [value for value in sent.values() if isinstance(value, web.FileField)]
    if len(files) != 1:
        raise BadRequest("The form should have one file: a workflow, a prompt, or a picture", type=_FAULT)
    fields = {name: _field(name, value) for name, value in sent.items() if isinstance(value, str)}
    return await asyncio.to_thread(files[0].file.read), fields


def _field(name: str, text: str) -> Any:
    if name not in ("extra_data", "partial_execution_targets"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise BadRequest(f"The field {name} should be JSON", type=_FAULT) from None
