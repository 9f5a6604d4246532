"""A node's own line to the world while it runs: NodeContext over a job's events and stop signal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from app.events import NodeName, NodePreview, NodeProgress, NodeText
from app.graph.preview import encoded, picture_of
from app.graph.services import Services
from app.graph.stop import StopSignal
from nodes.context import JobInterrupted, current_invocation
from runtime.diffusion.api import Preview, Progress
from runtime.llm.api import Token
from runtime.platform.handle import Handle

if TYPE_CHECKING:
    from PIL.Image import Image

R = TypeVar("R")

_request_numbers = count(1)


class JobNodeContext:
    """Progress, previews and text may come from any thread. Nothing is sent after the job was stopped."""

    def __init__(
        self,
        name: NodeName,
        prompt_id: str,
        client_id: str | None,
        hidden: Mapping[str, Any],
        stop: StopSignal,
        services: Services,
        sends_previews: bool = True,
    ) -> None:
        self.node_id = name.node_id
        self.prompt_id = prompt_id
        self.hidden = hidden
        self.files = services.files
        self.llm = services.llm
        self.diffusion = services.diffusion
        self._name = name
        self.client_id = client_id
        self._sends_previews = sends_previews
        self._stop = stop
        self._publish = services.publish
        self._threads = services.threads
        self._texts: dict[int, str] = {}
        self._text_lock = threading.Lock()

    def request_id(self) -> str:
        return f"{self.prompt_id}/{self.node_id}/{next(_request_numbers)}"

    def progress(self, value: float, maximum: float) -> None:
        self.check_cancelled()
        self._publish(NodeProgress(self.prompt_id, self.client_id, self._name, value, maximum))

    def preview(self, image: Image) -> None:
        self.check_cancelled()
        self._publish(NodePreview(self.prompt_id, self.client_id, self._name, encoded(image), "image/jpeg"))

    def text(self, delta: str) -> None:
        """Calls for several items write at once; each has lines of its own, in the order of the items."""
        self.check_cancelled()
        invocation = current_invocation.get(None)
        index = 0 if invocation is None else invocation.index
        with self._text_lock:
            self._texts[index] = self._texts.get(index, "") + delta
            text = "\n".join(self._texts[each] for each in sorted(self._texts))
            self._publish(NodeText(self.prompt_id, self.client_id, self._name, text))

    async def run(self, handle: Handle[R]) -> R:
        try:
            async for event in handle:
                await self._forward(event)
            return await handle
        finally:
            if not handle.finished:
                handle.cancel()

    def check_cancelled(self) -> None:
        if self._stop.is_set:
            raise JobInterrupted

    async def _forward(self, event: object) -> None:
        """What arrives after a stop is dropped; the handle's own end tells the rest."""
        if self._stop.is_set:
            return
        match event:
            case Progress(step=step, steps=steps):
                self.progress(step, steps)
            case Preview(rgb=rgb) if self._sends_previews:
                await asyncio.get_running_loop().run_in_executor(
                    self._threads, lambda: self.preview(picture_of(rgb))
                )
            case Token(text=text) if text:
                self.text(text)
