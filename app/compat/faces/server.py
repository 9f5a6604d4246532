"""`server`: PromptServer.instance with what packs use of it, over the running server."""

from __future__ import annotations

import asyncio
import io
import logging
import struct
from typing import Any

from PIL.Image import Image

from app.compat.host import OnPrompt, host
from app.compat.routes import PackRoutes
from app.events import PackMessage
from nodes.context import current_context

log = logging.getLogger(__name__)


class BinaryEventTypes:
    PREVIEW_IMAGE = 1
    UNENCODED_PREVIEW_IMAGE = 2
    TEXT = 3
    PREVIEW_IMAGE_WITH_METADATA = 4


class _Queue:
    """The queue as packs ask about it."""

    def get_tasks_remaining(self) -> int:
        jobs = host().jobs
        return jobs.remaining() if jobs is not None else 0

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Treadle does not serve PromptServer.instance.prompt_queue.{name}")


class PromptServer:
    instance: PromptServer

    def __init__(self) -> None:
        self.prompt_queue = _Queue()
        self.supports = ["custom_nodes_from_web"]
        self.sockets_metadata: dict[str, Any] = {}

    @property
    def routes(self) -> PackRoutes:
        return host().routes

    @property
    def app(self) -> Any:
        return host().routes.app

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The server's own; before there is one, or without a server, the caller's."""
        return host().loop or asyncio.get_event_loop()

    @property
    def client_id(self) -> str | None:
        """Whose prompt runs here."""
        return getattr(current_context.get(None), "client_id", None)

    @client_id.setter
    def client_id(self, value: str | None) -> None:
        log.warning("a pack sets PromptServer.instance.client_id; every job keeps its own")

    @property
    def last_node_id(self) -> str | None:
        context = current_context.get(None)
        return None if context is None else context.node_id

    @property
    def last_prompt_id(self) -> str | None:
        context = current_context.get(None)
        return None if context is None else context.prompt_id

    @property
    def number(self) -> int:
        return 0

    def add_on_prompt_handler(self, handler: OnPrompt) -> None:
        """`handler(body)` sees every posted prompt before it is judged, and returns it, changed or not."""
        host().on_prompt.append(handler)

    def send_sync(self, event: str | int, data: Any, sid: str | None = None) -> None:
        """From any thread; to one client, or to all."""
        frame = None if isinstance(event, str) else _frame(event, data)
        if frame is None:
            host().publish(PackMessage(sid, str(event), data, None))
        else:
            host().publish(PackMessage(sid, "", None, frame))

    async def send(self, event: str | int, data: Any, sid: str | None = None) -> None:
        self.send_sync(event, data, sid)

    async def send_json(self, event: str, data: Any, sid: str | None = None) -> None:
        self.send_sync(event, data, sid)

    async def send_bytes(self, event: int, data: bytes, sid: str | None = None) -> None:
        self.send_sync(event, data, sid)

    async def send_image(self, image_data: Any, sid: str | None = None) -> None:
        self.send_sync(BinaryEventTypes.UNENCODED_PREVIEW_IMAGE, image_data, sid)

    def send_progress_text(self, text: str | bytes, node_id: str, sid: str | None = None) -> None:
        encoded, name = text.encode() if isinstance(text, str) else text, str(node_id).encode()
        self.send_sync(BinaryEventTypes.TEXT, struct.pack(">I", len(name)) + name + encoded, sid)

    def queue_updated(self) -> None:
        """The server tells its clients by itself."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Treadle does not serve PromptServer.instance.{name}; see docs/compat.md")


PromptServer.instance = PromptServer()


def _frame(event: int, data: Any) -> bytes:
    """An unencoded picture is (format, picture, largest side); everything else is bytes already."""
    if event == BinaryEventTypes.UNENCODED_PREVIEW_IMAGE:
        kind, picture, largest = data
        return struct.pack(">I", BinaryEventTypes.PREVIEW_IMAGE) + _encoded(str(kind), picture, largest)
    return struct.pack(">I", event) + bytes(data)


def _encoded(kind: str, picture: Image, largest: int | None) -> bytes:
    if largest is not None and max(picture.size) > largest:
        picture = picture.copy()
        picture.thumbnail((largest, largest))
    is_png = kind.upper() == "PNG"
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG" if is_png else "JPEG", quality=95, compress_level=1)
    return struct.pack(">I", 2 if is_png else 1) + buffer.getvalue()
