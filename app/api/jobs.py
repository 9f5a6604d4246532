"""/jobs: one list of everything that waits, runs or has ended."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from app import job_summary
from app.api.describe import INTEGER, STRING, takes
from app.api.read import json_value
from app.job_summary import ENDED, STATUSES
from app.keys import HISTORY, JOBS

routes = web.RouteTableDef()


class Fault(Exception):
    """A wrong query, in the one-line form of this resource."""


@routes.get("/jobs")
@takes(status=STRING, workflow_id=STRING, sort_by=STRING, sort_order=STRING, limit=INTEGER, offset=INTEGER)
async def list_jobs(request: web.Request) -> web.Response:
    try:
        statuses, by, descending = _statuses(request), _sort_by(request), _sort_order(request)
        limit, offset = _limit(request), _offset(request)
    except Fault as fault:
        return web.json_response({"error": str(fault)}, status=400)
    workflow_id = request.query.get("workflow_id")
    jobs = [job for job in _live_jobs(request) if job["status"] in statuses]
    if workflow_id is not None:
        jobs = [job for job in jobs if job.get("workflow_id") == workflow_id]
    num_ended, ended = await request.app[HISTORY].summaries(
        (status for status in ENDED if status in statuses),
        by=by,
        descending=descending,
        workflow_id=workflow_id,
        limit=None if limit is None else offset + limit,
    )
    total = len(jobs) + num_ended
    jobs = job_summary.ordered(jobs + ended, by, descending)
    page = jobs[offset:] if limit is None else jobs[offset : offset + limit]
    pagination = {
        "offset": offset,
        "limit": limit,
        "total": total,
        "has_more": offset + len(page) < total,
    }
    return web.json_response({"jobs": page, "pagination": pagination})


@routes.get("/jobs/{id}")
async def get_job(request: web.Request) -> web.Response:
    job_id = request.match_info["id"]
    for job in _live(request):
        if job[0][1] == job_id:
            item, status = job
            workflow = {"prompt": item[2], "extra_data": item[3]}
            return web.json_response({**job_summary.from_queue(item, status), "workflow": workflow})
    item_of_history = await request.app[HISTORY].item(job_id)
    if item_of_history is None:
        return web.json_response({"error": "Job not found"}, status=404)
    summary = job_summary.from_history(item_of_history)
    return web.json_response(job_summary.detailed(summary, item_of_history))


@routes.post("/jobs/{id}/cancel")
async def cancel_job(request: web.Request) -> web.Response:
    return web.json_response({"cancelled": await request.app[JOBS].cancel(request.match_info["id"])})


@routes.post("/jobs/cancel")
@takes({"type": "object", "properties": {"job_ids": {"type": "array", "items": STRING}}})
async def cancel_jobs(request: web.Request) -> web.Response:
    body = await json_value(request)
    ids = body.get("job_ids") if isinstance(body, dict) else None
    if not isinstance(ids, list):
        return web.json_response({"error": "job_ids must be a list"}, status=400)
    invalid = [one for one in ids if not isinstance(one, str) or not one]
    if invalid:
        answer = {"error": "job_ids contains invalid id(s)", "invalid_ids": invalid}
        return web.json_response(answer, status=400)
    cancelled = [await request.app[JOBS].cancel(one) for one in ids]
    return web.json_response({"cancelled": any(cancelled)})


def _live(request: web.Request) -> list[tuple[list[Any], str]]:
    jobs = request.app[JOBS]
    running = [(job.as_json(), "in_progress") for job in jobs.running()]
    return running + [(job.as_json(), "pending") for job in jobs.pending()]


def _live_jobs(request: web.Request) -> list[dict[str, Any]]:
    return [job_summary.from_queue(item, status) for item, status in _live(request)]


def _statuses(request: web.Request) -> frozenset[str]:
    text = request.query.get("status")
    if not text:
        return frozenset(STATUSES)
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in STATUSES]
    if unknown:
        raise Fault(f"Invalid status value(s): {', '.join(unknown)}. Valid values: {', '.join(STATUSES)}")
    return frozenset(wanted)


def _sort_by(request: web.Request) -> str:
    by = request.query.get("sort_by", "created_at")
    if by not in ("created_at", "execution_duration"):
        raise Fault("sort_by must be 'created_at' or 'execution_duration'")
    return by


def _sort_order(request: web.Request) -> bool:
    order = request.query.get("sort_order", "desc")
    if order not in ("asc", "desc"):
        raise Fault("sort_order must be 'asc' or 'desc'")
    return order == "desc"


def _limit(request: web.Request) -> int | None:
    limit = _integer(request, "limit")
    if limit is not None and limit < 1:
        raise Fault("limit must be a positive integer")
    return limit


def _offset(request: web.Request) -> int:
    return max(_integer(request, "offset") or 0, 0)


def _integer(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise Fault(f"{name} must be an integer") from None
