"""Content parts of messages into what the language runtime takes: texts, and media wherever they lie."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from aiohttp import web

from app import decode, remote
from app.api.media import existing
from app.errors import BadRequest
from app.keys import CONFIG, FILES
from app.openai.types import (
    AudioPart,
    ChatMessage,
    ImageDataPart,
    ImageUrlPart,
    Part,
    TextPart,
    VideoPart,
    VideoUrlPart,
)

if TYPE_CHECKING:
    from runtime.llm.api import Media

T = TypeVar("T")

# What `messages` of requests.py takes: the content of each message.
Contents = list[str | tuple["str | Media", ...]]


async def contents(request: web.Request, messages: Sequence[ChatMessage]) -> Contents:
    """Fetches and decodes everything at once. Raises `BadRequest` with the reason."""
    return list(await asyncio.gather(*(_content(request, each) for each in messages)))


async def _content(request: web.Request, message: ChatMessage) -> str | tuple[str | Media, ...]:
    given = message.content
    if given is None or isinstance(given, str):
        return given or ""
    texts = [part.text for part in given if isinstance(part, TextPart)]
    if len(texts) == len(given):
        return "".join(texts)
    return tuple(await asyncio.gather(*(_part(request, part) for part in given)))


async def _part(request: web.Request, part: Part) -> str | Media:
    match part:
        case TextPart(text=text):
            return text
        case ImageUrlPart(image_url=url):
            return await _decoded(decode.image, request, url if isinstance(url, str) else url.url)
        case ImageDataPart(image_data=data):
            return await _decoded(decode.image, request, data)
        case VideoUrlPart(video_url=url):
            return await _decoded(decode.video, request, url if isinstance(url, str) else url.url)
        case VideoPart():
            return await _frames(request, part)
        case AudioPart(input_audio=audio):
            return await _decoded(decode.audio, request, audio.data)


async def _frames(request: web.Request, part: VideoPart) -> Media:
    """A video as a list of its pictures, which all have the first one's size."""
    import torch

    from runtime.llm.api import Video

    frames = await asyncio.gather(*(_decoded(decode.image, request, each) for each in part.video))
    if len({each.pixels.shape for each in frames}) > 1:
        raise BadRequest("The frames of a video should all have one size")
    pixels = torch.stack([each.pixels for each in frames])
    return Video(pixels, tuple(number / part.fps for number in range(len(frames))))


async def _decoded(read: Callable[[bytes], T], request: web.Request, source: str) -> T:
    content = await _bytes(request, source)
    return await asyncio.to_thread(read, content)


async def _bytes(request: web.Request, source: str) -> bytes:
    """From a data URI, base64, an http(s) address, or /view?filename=..., which names an uploaded file."""
    if source.startswith("data:"):
        return await asyncio.to_thread(_data_uri, source)
    if source.startswith(("http://", "https://")):
        allowed = request.app[CONFIG].remote_media
        if allowed == "none":
            raise BadRequest("Fetching media from other servers is off; --allow-remote-media turns it on")
        return await remote.fetch(source, allow_private=allowed == "any")
    if source.startswith(("/view?", "/api/view?")):
        return await asyncio.to_thread(_uploaded, request, source)
    return await asyncio.to_thread(_base64, source)


def _data_uri(source: str) -> bytes:
    head, comma, data = source.partition(",")
    if not comma:
        raise BadRequest("This data URI has no comma between its type and its data")
    return _base64(data) if head.endswith(";base64") else unquote_to_bytes(data)


def _base64(data: str) -> bytes:
    try:
        return base64.b64decode(data.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(
            "Media are data URIs, base64, http(s) addresses, or /view?filename=... of uploaded files"
        ) from None


def _uploaded(request: web.Request, source: str) -> bytes:
    query = {name: values[0] for name, values in parse_qs(urlsplit(source).query).items()}
    if "filename" not in query:
        raise BadRequest("filename is missing in the /view address")
    kind, subfolder = query.get("type", "input"), query.get("subfolder", "")
    return existing(request.app[FILES], query["filename"], kind, subfolder).read_bytes()
