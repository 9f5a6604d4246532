"""Videos as pictures, for models that take pictures only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runtime.llm import frames
from runtime.llm.api import ChatRequest, Image, Media, Message, Request, TokenizeRequest, Video
from runtime.llm.media import Kind

_FPS = 1.0
_FEWEST = 2
_MOST = 16


def without_videos(request: Request, kinds: Sequence[Kind]) -> Request:
    """The request with each video of its messages as pictures in its place, where `kinds` ask for that.

    Requests without messages say themselves where each medium stands, and stay as they are.
    """
    if "video" in kinds or "image" not in kinds:
        return request
    match request:
        case ChatRequest(messages=messages):
            return replace(request, messages=tuple(map(_without_videos, messages)))
        case TokenizeRequest(prompt=prompt) if not isinstance(prompt, str):
            messages = tuple(_without_videos(each) for each in prompt if isinstance(each, Message))
            return replace(request, prompt=messages) if messages else request
    return request


def _without_videos(message: Message) -> Message:
    if not any(isinstance(part, Video) for part in message.parts):
        return message
    return replace(message, content=tuple(each for part in message.parts for each in _stills(part)))


def _stills(part: str | Media) -> Sequence[str | Media]:
    if not isinstance(part, Video):
        return [part]
    return [Image(part.frames[at]) for at in frames.sample(part.times, _FPS, _FEWEST, _MOST)]
