"""What models there are, what tokens a text has, and what vector stands for it."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from app.api.describe import takes
from app.api.read import json_body
from app.errors import NotFound
from app.keys import STARTUP
from app.openai import requests, workflows
from app.openai.content import contents
from app.openai.errors import speaks_openai
from app.openai.stream import while_listening
from app.openai.types import EmbeddingBody, TokenizeBody
from runtime.llm.api import Embedding, EmbedRequest, Tokenized
from runtime.platform.handle import Handle

if TYPE_CHECKING:
    import torch

routes = web.RouteTableDef()

_CREATED = int(time.time())


@routes.get("/v1/models")
@speaks_openai
async def list_models(request: web.Request) -> web.Response:
    names = [*await _names(request), *await workflows.names(request)]
    return web.json_response({"object": "list", "data": [_model(name) for name in names]})


@routes.get("/v1/models/{model:.+}")
@speaks_openai
async def show_model(request: web.Request) -> web.Response:
    name = request.match_info["model"]
    if name not in [*await _names(request), *await workflows.names(request)]:
        raise NotFound(f"There is no language model called {name}")
    return web.json_response(_model(name))


@routes.post("/v1/tokenize")
@speaks_openai
@takes(TokenizeBody)
async def tokenize(request: web.Request) -> web.Response:
    body = await json_body(request, TokenizeBody)
    runtime = (await request.app[STARTUP].ready()).llm
    asked = requests.tokenize(body, await contents(request, body.messages or []))
    tokens = await cast("Handle[Tokenized]", runtime.submit(asked))
    return web.json_response(
        {
            "count": len(tokens.token_ids),
            "max_model_len": tokens.context_length,
            "tokens": list(tokens.token_ids),
            "token_strs": [piece.decode("utf-8", "replace") for piece in tokens.pieces],
        }
    )


@routes.post("/v1/embeddings")
@speaks_openai
@takes(EmbeddingBody)
async def embed(request: web.Request) -> web.Response:
    """The mean of the last layer's hidden states of all tokens, of length one."""
    body = await json_body(request, EmbeddingBody)
    runtime = (await request.app[STARTUP].ready()).llm
    answer_id = requests.new_id("embd")
    asked = [
        EmbedRequest(f"{answer_id}.{index}", body.model, prompt, adapter=body.lora_path)
        for index, prompt in enumerate(requests.prompts(body.input))
    ]
    handles = [cast("Handle[Embedding]", runtime.submit(each)) for each in asked]
    async with while_listening(request, handles):
        answers = await asyncio.gather(*handles)
    vectors = await asyncio.to_thread(_vectors, answers, body.encoding_format)
    data = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(vectors)]
    count = sum(len(answer.token_ids) for answer in answers)
    usage = {"prompt_tokens": count, "total_tokens": count}
    return web.json_response({"object": "list", "data": data, "model": body.model, "usage": usage})


async def _names(request: web.Request) -> Sequence[str]:
    runtime = (await request.app[STARTUP].ready()).llm
    return await asyncio.to_thread(runtime.models)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "treadle"}


def _vectors(answers: Sequence[Embedding], encoding: str) -> list[list[float] | str]:
    means = [_unit(answer.hidden.mean(0)) for answer in answers]
    if encoding == "float":
        return [mean.tolist() for mean in means]
    return [base64.b64encode(mean.numpy().astype("<f4").tobytes()).decode() for mean in means]


def _unit(vector: torch.Tensor) -> torch.Tensor:
    return vector / vector.norm().clamp(min=1e-12)
