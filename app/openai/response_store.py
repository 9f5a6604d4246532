"""Responses that later questions go on with or ask for again: the newest ones, in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from app.errors import NotFound
from app.openai.shapes import Json
from app.openai.types import ChatMessage

_NUM_KEPT = 512
_MAX_CHARACTERS = 64 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """`conversation` is all that was said, the answer included, without instructions."""

    response: Json
    conversation: Sequence[ChatMessage]

    @property
    def size(self) -> int:
        return sum(len(message.model_dump_json()) for message in self.conversation)


class ResponseStore:
    """Lives in the event loop. Beyond its room the oldest go."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Stored, int]] = OrderedDict()
        self._num_characters = 0

    def put(self, stored: Stored) -> None:
        self._kept[stored.response["id"]] = (stored, stored.size)
        self._num_characters += stored.size
        while len(self._kept) > _NUM_KEPT or self._num_characters > _MAX_CHARACTERS:
            self._num_characters -= self._kept.popitem(last=False)[1][1]

    def get(self, response_id: str) -> Stored:
        if response_id not in self._kept:
            raise NotFound(f"There is no response {response_id}; the newest {_NUM_KEPT} are kept in memory")
        return self._kept[response_id][0]

    def delete(self, response_id: str) -> None:
        self.get(response_id)
        self._num_characters -= self._kept.pop(response_id)[1]


RESPONSES = web.AppKey("responses", ResponseStore)
