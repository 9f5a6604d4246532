"""A chat's body into what answers it: the language runtime, or a workflow that is called as a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from aiohttp import web

from app.keys import STARTUP
from app.openai import requests
from app.openai.content import contents
from app.openai.types import ChatBody
from app.openai.workflows import PREFIX, run
from runtime.llm.api import Completion
from runtime.platform.handle import Handle

Handles = Sequence[Handle[Completion]]


@dataclass(frozen=True, slots=True)
class Asked:
    """`has_schema` tells that the answers are JSON, so that they can be handed over as values."""

    handles: Handles
    has_schema: bool = False


async def ask(request: web.Request, body: ChatBody, answer_id: str) -> Asked:
    given = await contents(request, body.messages)
    if body.model.startswith(PREFIX):
        return Asked([await run(request, body, answer_id, given)])
    runtime = (await request.app[STARTUP].ready()).llm
    asked = requests.chat(body, answer_id, given)
    grammar = asked[0].params.grammar
    handles = [cast("Handle[Completion]", runtime.submit(each)) for each in asked]
    return Asked(handles, grammar is not None and grammar.kind == "json_schema")
