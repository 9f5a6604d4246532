"""/convert: an editor's workflow becomes the prompt that the editor would have queued."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from app.api.describe import FLAG, takes
from app.api.posted import PromptBody, posted
from app.api.read import query_flag
from app.errors import BadRequest
from app.json_text import encode
from app.keys import DEFINITIONS, STARTUP
from app.workflow.convert import Conversion, convert
from app.workflow.report import Report

routes = web.RouteTableDef()


@routes.post("/convert")
@takes(PromptBody, strict=FLAG, advance_seeds=FLAG)
async def post_workflow(request: web.Request) -> web.Response:
    """A prompt in API format is answered as it is."""
    arrived = await posted(request)
    if arrived.body.prompt is not None:
        conversion = Conversion(arrived.body.prompt, Report())
    elif arrived.workflow is not None:
        conversion = await converted(
            request.app,
            arrived.workflow,
            strict=query_flag(request, "strict"),
            advance_seeds=query_flag(request, "advance_seeds"),
        )
    else:
        raise BadRequest("There is no workflow in the body", type="no_prompt")
    answer = {"prompt": conversion.prompt, "report": conversion.report.as_json()}
    return web.Response(text=await asyncio.to_thread(encode, answer), content_type="application/json")


async def converted(
    app: web.Application,
    workflow: dict[str, Any],
    *,
    chance: str | None = None,
    strict: bool = False,
    advance_seeds: bool = False,
    promoted: Mapping[str, Any] | None = None,
) -> Conversion:
    """By the installed nodes. Equal texts for `chance` choose equally where the workflow leaves a choice."""
    studio = await app[STARTUP].ready()
    described = await app[DEFINITIONS].every(studio.registry)
    rng = random.Random(chance)
    try:
        return await asyncio.to_thread(
            convert,
            workflow,
            described.entries,
            strict=strict,
            advance_seeds=advance_seeds,
            promoted=promoted,
            rng=rng,
        )
    except ValueError as error:
        reason = f"This workflow cannot be converted to a prompt: {error}"
        raise BadRequest(reason, type="invalid_workflow") from None
    except RecursionError:
        raise BadRequest("This workflow is nested too deeply", type="invalid_workflow") from None
