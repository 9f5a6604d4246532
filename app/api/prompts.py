"""/prompt: a graph comes in, is judged, and is queued."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from app.api.read import json_body
from app.compat.host import HOST, OnPrompt
from app.errors import error_body
from app.graph.complaints import PromptRejected
from app.graph.validate import parse_and_validate
from app.keys import CONFIG, FILES, JOBS, STARTUP
from app.queue import Job
from app.revive import NO_METADATA

log = logging.getLogger(__name__)

routes = web.RouteTableDef()

SECRETS = ("auth_token_comfy_org", "api_key_comfy_org")


class PromptBody(BaseModel):
    """`prompt` stays plain JSON here: app.graph judges it, node by node. Packs may add fields."""

    model_config = ConfigDict(extra="allow")

    prompt: dict[str, Any] | None = None
    client_id: str | None = None
    prompt_id: str | None = None
    extra_data: dict[str, Any] | None = None
    front: bool = False
    number: float | None = None
    partial_execution_targets: list[str] | None = None


@routes.get("/prompt")
async def queue_length(request: web.Request) -> web.Response:
    return web.json_response({"exec_info": {"queue_remaining": request.app[JOBS].remaining()}})


@routes.post("/prompt")
async def post_prompt(request: web.Request) -> web.Response:
    body = await json_body(request, PromptBody, fault_type="invalid_prompt")
    body = await _rewritten(body, request.app[HOST].on_prompt)
    jobs = request.app[JOBS]
    number = body.number if body.number is not None else jobs.next_number(body.front)
    if body.prompt is None:
        return _refused(error_body("no_prompt", "No prompt provided", "No prompt provided"))
    prompt_id = body.prompt_id or str(uuid.uuid4())
    if (fault := _prompt_id_fault(prompt_id, jobs.state(prompt_id))) is not None:
        return _refused(error_body("invalid_prompt_id", "prompt_id must be a valid UUID", fault))
    studio = await request.app[STARTUP].ready()
    valid = await asyncio.to_thread(
        parse_and_validate, body.prompt, studio.registry, request.app[FILES], body.partial_execution_targets
    )
    if isinstance(valid, PromptRejected):
        return _refused(valid.as_json())
    extra_data = _completed(body, request)
    hidden = {name: extra_data.pop(name) for name in SECRETS if name in extra_data}
    if not request.app[CONFIG].metadata:
        hidden |= NO_METADATA
    await jobs.submit(Job(prompt_id, number, valid, body.client_id, extra_data, hidden))
    answer = {"prompt_id": prompt_id, "number": number, "node_errors": valid.node_errors_json()}
    return web.json_response(answer)


async def _rewritten(body: PromptBody, handlers: Sequence[OnPrompt]) -> PromptBody:
    """Packs may change a prompt before anybody judges it. One that fails is passed over."""
    for handler in list(handlers):
        try:
            changed = await asyncio.to_thread(handler, body.model_dump(exclude_unset=True))
            body = PromptBody.model_validate(changed)
        except ValidationError:
            log.error("a pack's prompt handler %r returned no prompt, and is passed over", handler)
        # foreign code, whose failure must not refuse everybody's prompts
        except Exception:
            log.exception("a pack's prompt handler %r failed", handler)
    return body


def _refused(body: dict[str, Any]) -> web.Response:
    return web.json_response(body, status=400)


def _prompt_id_fault(prompt_id: str, state: str | None) -> str | None:
    try:
        is_canonical = str(uuid.UUID(prompt_id)) == prompt_id
    except ValueError:
        is_canonical = False
    if not is_canonical:
        return f"'{prompt_id}' is not a lower-case UUID with hyphens"
    return None if state is None else f"a prompt with the id {prompt_id} is {state} already"


def _completed(body: PromptBody, request: web.Request) -> dict[str, Any]:
    extra_data = dict(body.extra_data or {})
    if body.client_id is not None:
        extra_data["client_id"] = body.client_id
    if "Comfy-Usage-Source" in request.headers:
        extra_data.setdefault("comfy_usage_source", request.headers["Comfy-Usage-Source"])
    extra_data["create_time"] = time.time_ns() // 1_000_000
    return extra_data
