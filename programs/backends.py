"""What answers programs: a language runtime in this process, or a server that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from app import decode
from programs.turns import Answer, Gap, Picture, Turn
from runtime.llm.api import ChatRequest, Completion, Grammar, LanguageRuntime, Message, Token
from runtime.platform.errors import RuntimeFault
from runtime.platform.handle import Handle

Json = dict[str, Any]
_KINDS = {b"\xff\xd8": "jpeg", b"GI": "gif", b"RI": "webp"}


class EngineBackend:
    def __init__(self, runtime: LanguageRuntime, model: str) -> None:
        self._runtime = runtime
        self._model = model

    def generate(self, turns: Sequence[Turn], gap: Gap, hear: Callable[[str], None]) -> Answer:
        messages = tuple(Message(turn.role, tuple(_seen(part) for part in turn.parts)) for turn in turns)
        request_id = f"program-{uuid.uuid4().hex}"
        continues = turns[-1].role == "assistant"
        request = ChatRequest(request_id, self._model, messages, gap.params, continues_last=continues)
        return asyncio.run(_listen(cast("Handle[Completion]", self._runtime.submit(request)), hear))


async def _listen(handle: Handle[Completion], hear: Callable[[str], None]) -> Answer:
    try:
        async for event in handle:
            if isinstance(event, Token) and event.text:
                hear(event.text)
    finally:
        handle.cancel()
    done = await handle
    counts = (done.prompt_tokens, done.cached_tokens, len(done.token_ids))
    return Answer(done.text, done.finish_reason, *counts)


def _seen(part: str | Picture | Gap) -> Any:
    return decode.image(part.content) if isinstance(part, Picture) else part


class HttpBackend:
    """`url` ends in /v1."""

    def __init__(self, url: str, model: str, api_key: str = "none") -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._api_key = api_key

    def generate(self, turns: Sequence[Turn], gap: Gap, hear: Callable[[str], None]) -> Answer:
        text, finish, usage = "", "", dict[str, Any]()
        for chunk in self._chunks({"model": self._model, **_question(turns), **_manner(gap)}):
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                finish = choice["finish_reason"] or finish
                if piece := choice["delta"].get("content"):
                    text += piece
                    hear(piece)
        if not finish:
            raise RuntimeFault(f"{self._url} ended an answer in the middle")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        return Answer(text, finish, usage["prompt_tokens"], cached, usage["completion_tokens"])

    def _chunks(self, body: Json) -> Iterator[Json]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._api_key}"}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        try:
            # closing the answer early is how a server learns that nobody waits for the rest
            with urllib.request.urlopen(request) as answer:
                yield from _events(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")
            raise RuntimeFault(f"{self._url} answered {error.code}: {said}") from None
        except urllib.error.URLError as error:
            raise RuntimeFault(f"{self._url} cannot be reached: {error.reason}") from None


def _events(lines: Iterable[bytes]) -> Iterator[Json]:
    for line in lines:
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            event: Json = json.loads(data)
            if "error" in event:
                raise RuntimeFault(str(event["error"]))
            yield event


def _question(turns: Sequence[Turn]) -> Json:
    messages = [{"role": turn.role, "content": [_part(part) for part in turn.parts]} for turn in turns]
    if turns[-1].role != "assistant":
        return {"messages": messages}
    return {"messages": messages, "continue_final_message": True, "add_generation_prompt": False}


def _part(part: str | Picture | Gap) -> Json:
    if not isinstance(part, Picture):
        return {"type": "text", "text": part}
    kind = _KINDS.get(part.content[:2], "png")
    address = f"data:image/{kind};base64,{base64.b64encode(part.content).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}


def _manner(gap: Gap) -> Json:
    params = gap.params
    manner: Json = {"stream": True, "stream_options": {"include_usage": True}, "stop": list(params.stop)}
    for name in ("max_tokens", "temperature", "top_p", "seed"):
        manner[name] = getattr(params, name)
    match params.grammar:
        case Grammar("regex", regex):
            manner["regex"] = regex
        case Grammar("json_schema", schema):
            named = {"name": gap.name, "schema": json.loads(schema)}
            manner["response_format"] = {"type": "json_schema", "json_schema": named}
        case Grammar("choice", choices):
            manner["structured_outputs"] = {"choice": json.loads(choices)}
    return manner
