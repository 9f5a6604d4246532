"""Workflows as models: `workflow:NAME` is a saved workflow of the user's, or one of the examples."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from app.api.convert import converted
from app.api.users import user_folder
from app.compat.host import HOST
from app.compat.replacing import replaced
from app.errors import BadRequest, NotFound
from app.files import within
from app.graph.complaints import PromptRejected
from app.graph.validate import parse_and_validate
from app.keys import CONFIG, DEFINITIONS, FILES, JOBS, STARTUP
from app.openai.content import Contents
from app.openai.types import ChatBody
from app.openai.workflow_inputs import PROMPT, Prompt, Value, filled
from app.openai.workflow_outputs import Said
from app.openai.workflow_run import Run
from app.queue import Job
from app.revive import NO_METADATA
from app.workflow.schema import is_workflow
from runtime.llm.api import Completion, Image
from runtime.platform.handle import Handle

PREFIX = "workflow:"
_SETTINGS = ("seed", "temperature", "top_p", "max_tokens", "max_completion_tokens")
_NOT_FOR_WORKFLOWS = ("tools", "response_format", "structured_outputs", "logprobs", "stop", "logit_bias")


async def names(request: web.Request) -> list[str]:
    """Of all workflows that this user may call."""

    def read() -> list[str]:
        own = _own_folder(request)
        saved = [path.relative_to(own).with_suffix("").as_posix() for path in own.rglob("*.json")]
        examples = [path.stem for path in request.app[CONFIG].examples.glob("*.json")]
        return [f"{PREFIX}{name}" for name in sorted({*saved, *examples})]

    return await asyncio.to_thread(read)


async def run(request: web.Request, body: ChatBody, answer_id: str, given: Contents) -> Handle[Completion]:
    """Starts it as a job like any other. Raises `BadRequest` for what it has no place for."""
    refused = [name for name in _NOT_FOR_WORKFLOWS if getattr(body, name)]
    if refused or (body.n or 1) > 1:
        raise BadRequest(f"A workflow takes no {refused[0] if refused else 'n above 1'}")
    document = await asyncio.to_thread(_document, request, body.model.removeprefix(PREFIX))
    studio = await request.app[STARTUP].ready()
    values, wanted = await _values(request, body, given)
    prompt, placed = await _placed(request, document, values, answer_id)
    missing = sorted(wanted - placed)
    if missing:
        raise BadRequest(
            f"{body.model} has no place for {missing[0]}: title one of its nodes 'Input: {missing[0]}'"
        )
    prompt = replaced(prompt, request.app[HOST].replacements, studio.registry.knows)
    valid = await asyncio.to_thread(parse_and_validate, prompt, studio.registry, request.app[FILES])
    if isinstance(valid, PromptRejected):
        raise BadRequest(_complaint(valid))
    described = await request.app[DEFINITIONS].every(studio.registry)
    job_id = str(uuid.uuid4())
    extra = {"create_time": time.time_ns() // 1_000_000, "client_id": f"openai-{job_id}"}
    if is_workflow(document):
        extra["extra_pnginfo"] = {"workflow": document}
    hidden = {} if request.app[CONFIG].metadata else dict(NO_METADATA)
    number = request.app[JOBS].next_number(front=False)
    job = Job(job_id, number, valid, f"openai-{job_id}", extra, hidden)
    return await Run(request.app, job, Said.of(prompt, described.entries)).start()


def _own_folder(request: web.Request) -> Path:
    return within(user_folder(request), "workflows")


def _document(request: web.Request, name: str) -> dict[str, Any]:
    for folder in (_own_folder(request), request.app[CONFIG].examples):
        path = within(folder, f"{name}.json")
        if path.is_file():
            try:
                document = json.loads(path.read_bytes())
            except (ValueError, RecursionError) as error:
                raise BadRequest(f"The workflow {name} is no JSON: {error}") from None
            if not isinstance(document, dict):
                raise BadRequest(f"The workflow {name} is no workflow")
            return document
    raise NotFound(f"There is no workflow called {name}")


async def _values(request: web.Request, body: ChatBody, given: Contents) -> tuple[dict[str, Value], set[str]]:
    """What the chat gives, by name, and the names of what may not be lost."""
    asked = [content for message, content in zip(body.messages, given) if message.role == "user"]
    system = [
        text
        for message, content in zip(body.messages, given)
        if message.role in ("system", "developer")
        for text in _texts(content)
    ]
    last = asked[-1] if asked else ""
    values: dict[str, Value] = {PROMPT: "".join(_texts(last))}
    if system:
        values["system"] = "\n\n".join(system)
    for name in _SETTINGS:
        if (value := getattr(body, name)) is not None:
            values["max_tokens" if name == "max_completion_tokens" else name] = value
    pictures = [each for each in (() if isinstance(last, str) else last) if not isinstance(each, str)]
    images = await asyncio.to_thread(_stored, request.app[FILES].directories.temp, pictures)
    values |= {"image" if not at else f"image {at + 1}": name for at, name in enumerate(images)}
    values |= body.inputs or {}
    wanted = {name for name in values if name.startswith("image")} | set(body.inputs or {})
    return values, wanted | ({PROMPT} if values[PROMPT] else set())


def _texts(content: str | tuple[Any, ...]) -> list[str]:
    return [content] if isinstance(content, str) else [each for each in content if isinstance(each, str)]


def _stored(folder: Path, media: Sequence[Any]) -> list[str]:
    """Pictures as files that the workflow's nodes can load, named by what they show."""
    from PIL import Image as Pictures

    found = []
    for each in media:
        if not isinstance(each, Image):
            raise BadRequest("A workflow takes text and images; videos and sounds have no place in it")
        pixels = each.pixels.numpy()
        digest = hashlib.blake2b(pixels.tobytes() + repr(pixels.shape).encode(), digest_size=16)
        name = f"chat_{digest.hexdigest()}.png"
        if not (folder / name).exists():
            partial = folder / f".{uuid.uuid4().hex}.png"
            Pictures.fromarray(pixels).save(partial)
            partial.replace(folder / name)
        found.append(f"{name} [temp]")
    return found


async def _placed(
    request: web.Request, document: dict[str, Any], values: dict[str, Value], chance: str
) -> tuple[Prompt, set[str]]:
    studio = await request.app[STARTUP].ready()
    prompt, promoted = document, frozenset[str]()
    if is_workflow(document):
        conversion = await converted(request.app, document, chance=chance, promoted=values)
        prompt, promoted = conversion.prompt, conversion.promoted
    elif not all(isinstance(node, dict) and "class_type" in node for node in document.values()):
        raise BadRequest("This file is neither a workflow nor a prompt in API format")
    described = await request.app[DEFINITIONS].every(studio.registry)
    result, placed = filled(prompt, values, described.entries)
    return result, placed | (promoted & set(values))


def _complaint(rejected: PromptRejected) -> str:
    error = rejected.error
    return f"{error.message}: {error.details}" if error.details else error.message
