"""/prompt: a graph comes in, is judged, and is queued."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from app import job_summary
from app.api.convert import converted
from app.api.describe import FLAG, NUMBER, takes
from app.api.posted import Posted, PromptBody, posted
from app.api.read import query_flag, query_seconds
from app.compat.host import HOST, OnPrompt
from app.compat.replacing import replaced
from app.errors import Conflict, error_body
from app.graph.complaints import PromptRejected
from app.graph.validate import ValidGraph, parse_and_validate
from app.json_text import encode
from app.keys import CONFIG, FILES, HISTORY, JOBS, STARTUP
from app.queue import Job
from app.revive import NO_METADATA
from app.workflow.report import Report

log = logging.getLogger(__name__)

routes = web.RouteTableDef()

SECRETS = ("auth_token_comfy_org", "api_key_comfy_org")


@routes.get("/prompt")
async def queue_length(request: web.Request) -> web.Response:
    return web.json_response({"exec_info": {"queue_remaining": request.app[JOBS].remaining()}})


@routes.post("/prompt")
@takes(PromptBody, wait=FLAG, timeout=NUMBER, advance_seeds=FLAG)
async def post_prompt(request: web.Request) -> web.Response:
    """With `wait=true` the answer comes when the prompt has ended, or with 202 after `timeout` seconds."""
    waits, timeout_s = query_flag(request, "wait"), query_seconds(request, "timeout")
    body, report = await _in_api_format(request, await posted(request))
    body = await _rewritten(body, request.app[HOST].on_prompt)
    jobs = request.app[JOBS]
    number = body.number if body.number is not None else jobs.next_number(body.front)
    if body.prompt is None:
        return _refused(error_body("no_prompt", "No prompt provided", "No prompt provided"))
    prompt_id = body.prompt_id or str(uuid.uuid4())
    if not _is_canonical(prompt_id):
        fault = f"'{prompt_id}' is not a lower-case UUID with hyphens"
        return _refused(error_body("invalid_prompt_id", "prompt_id must be a valid UUID", fault))
    studio = await request.app[STARTUP].ready()
    prompt = replaced(body.prompt, request.app[HOST].replacements, studio.registry.knows)
    valid = await asyncio.to_thread(
        parse_and_validate, prompt, studio.registry, request.app[FILES], body.partial_execution_targets
    )
    if isinstance(valid, PromptRejected):
        return _refused(valid.as_json())
    job = _job(request, body, prompt_id, number, valid)
    earlier = await jobs.find(prompt_id)
    if earlier is None:
        await jobs.submit(job)
    elif not _asks_the_same(earlier, job):
        raise Conflict(
            f"Another prompt with the id {prompt_id} is {jobs.state(prompt_id)}", type="prompt_id_used"
        )
    answer = {
        "prompt_id": prompt_id,
        "number": job.number if earlier is None else earlier.number,
        "node_errors": valid.node_errors_json(),
        **({} if report is None else {"report": report.as_json()}),
    }
    if not waits:
        return web.json_response(answer)
    return await _answer_at_the_end(request.app, answer, prompt_id, timeout_s)


async def _in_api_format(request: web.Request, arrived: Posted) -> tuple[PromptBody, Report | None]:
    """The editor's own document goes along, for the files that the prompt will write."""
    body, workflow = arrived.body, arrived.workflow
    if workflow is None:
        return body, None
    prompt, prompt_id, report = body.prompt, body.prompt_id, None
    if prompt is None:
        prompt_id = prompt_id or str(uuid.uuid4())
        advance_seeds = query_flag(request, "advance_seeds")
        conversion = await converted(request.app, workflow, chance=prompt_id, advance_seeds=advance_seeds)
        prompt, report = conversion.prompt, conversion.report
    extra_data = dict(body.extra_data or {})
    info = extra_data.get("extra_pnginfo")
    extra_data["extra_pnginfo"] = {"workflow": workflow, **(info if isinstance(info, dict) else {})}
    update = {"prompt": prompt, "prompt_id": prompt_id, "extra_data": extra_data}
    return body.model_copy(update=update), report


async def _rewritten(body: PromptBody, handlers: Sequence[OnPrompt]) -> PromptBody:
    """Packs may change a prompt before anybody judges it. One that fails is passed over."""
    for handler in list(handlers):
        try:
            changed = await asyncio.to_thread(handler, body.model_dump(exclude_unset=True))
            body = PromptBody.model_validate(changed)
        except ValidationError:
            log.error("a pack's prompt handler %r returned no prompt, and is passed over", handler)
        # foreign code, whose failure must not refuse everybody's prompts
        except (Exception, SystemExit, KeyboardInterrupt):
            log.exception("a pack's prompt handler %r failed", handler)
    return body


def _refused(body: dict[str, Any]) -> web.Response:
    return web.json_response(body, status=400)


def _is_canonical(prompt_id: str) -> bool:
    try:
        return str(uuid.UUID(prompt_id)) == prompt_id
    except ValueError:
        return False


def _job(request: web.Request, body: PromptBody, prompt_id: str, number: float, valid: ValidGraph) -> Job:
    extra_data = _completed(body, request)
    hidden = {name: extra_data.pop(name) for name in SECRETS if name in extra_data}
    if not request.app[CONFIG].metadata:
        hidden |= NO_METADATA
    return Job(prompt_id, number, valid, body.client_id, extra_data, hidden)


def _asks_the_same(earlier: Job, later: Job) -> bool:
    """Then it is the same request once more, of a client that missed the first answer."""
    return (earlier.client_id, earlier.valid.graph.prompt, earlier.valid.outputs) == (
        later.client_id,
        later.valid.graph.prompt,
        later.valid.outputs,
    )


async def _answer_at_the_end(
    app: web.Application, answer: dict[str, Any], prompt_id: str, timeout_s: float | None
) -> web.Response:
    try:
        async with asyncio.timeout(timeout_s):
            await app[JOBS].ended(prompt_id)
    except TimeoutError:
        status = "in_progress" if app[JOBS].state(prompt_id) == "running" else "pending"
        return web.json_response({**answer, "status": status}, status=202)
    item = await app[HISTORY].item(prompt_id)
    if item is None:
        return web.json_response({**answer, "status": "cancelled", "outputs": {}})
    ended = job_summary.from_history(item)
    failure = {"execution_error": ended["execution_error"]} if "execution_error" in ended else {}
    result = {**answer, "status": ended["status"], "outputs": item["outputs"], **failure}
    return web.Response(text=await asyncio.to_thread(encode, result), content_type="application/json")


def _completed(body: PromptBody, request: web.Request) -> dict[str, Any]:
    extra_data = dict(body.extra_data or {})
    if body.client_id is not None:
        extra_data["client_id"] = body.client_id
    if "Comfy-Usage-Source" in request.headers:
        extra_data.setdefault("comfy_usage_source", request.headers["Comfy-Usage-Source"])
    extra_data["create_time"] = time.time_ns() // 1_000_000
    return extra_data
