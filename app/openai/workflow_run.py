"""One job of a workflow as a request that a chat listens to: its texts are tokens, its pictures the rest."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import mimetypes
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from app.bus import Overrun, Replaced, Subscription
from app.errors import AppError, BadRequest
from app.events import Event, ExecutionEnd, ExecutionError, ExecutionInterrupted, NodeStarted
from app.files import within
from app.keys import BUS, FILES, JOBS
from app.openai.workflow_outputs import Said
from app.queue import Job
from runtime.llm.api import Completion, Token
from runtime.platform.handle import CancelledEvent, Done, Failed, Handle, Started

# what listens is kept here, or the loop would forget it
_listening: set[asyncio.Task[None]] = set()


class Run:
    def __init__(self, app: web.Application, job: Job, said: Said) -> None:
        self._app = app
        self._job = job
        self._said = said
        self._error: AppError | None = None
        self._is_stopped = False
        self._handle: Handle[Completion] = Handle(job.id, self._cancel)

    async def start(self) -> Handle[Completion]:
        client_id = self._job.client_id
        assert client_id is not None, self._job
        subscription = self._app[BUS].subscribe(client_id)
        try:
            await self._app[JOBS].submit(self._job)
        except BaseException:
            self._app[BUS].unsubscribe(subscription)
            raise
        self._keep(self._listen(subscription))
        return self._handle

    def _cancel(self, _: str) -> None:
        self._is_stopped = True
        self._keep(self._stop())

    async def _stop(self) -> None:
        await self._app[JOBS].cancel(self._job.id)

    def _keep(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        _listening.add(task)
        task.add_done_callback(_listening.discard)

    async def _listen(self, subscription: Subscription) -> None:
        self._handle.deliver(Started(self._job.id))
        try:
            await self._follow(subscription)
            await self._finish()
        except (Overrun, Replaced) as error:
            self._handle.deliver(Failed(self._job.id, AppError(f"The workflow was lost sight of: {error}")))
        # whoever waits for this must hear of the fault
        except Exception as error:
            self._handle.deliver(Failed(self._job.id, error))
        finally:
            self._app[BUS].unsubscribe(subscription)

    async def _follow(self, subscription: Subscription) -> None:
        ended = asyncio.create_task(self._app[JOBS].ended(self._job.id))
        try:
            while True:
                coming = asyncio.create_task(subscription.receive())
                await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    # it was taken from the queue before it began, of which no event tells
                    coming.cancel()
                    self._is_stopped = True
                    return
                event = getattr(coming.result(), "event", None)
                if isinstance(event, ExecutionEnd) and event.prompt_id == self._job.id:
                    return
                if event is not None:
                    self._hear(event)
        finally:
            ended.cancel()

    def _hear(self, event: Event) -> None:
        match event:
            case ExecutionError(exception_type="ExecutionBlocked"):
                return
            case ExecutionError():
                # a fault of the caller's, so that clients do not try the same thing again
                where = f" in {event.node_type} (node {event.node_id})" if event.node_id else ""
                self._error = BadRequest(f"The workflow failed{where}: {event.exception_message.strip()}")
            case ExecutionInterrupted():
                self._is_stopped = True
            case NodeStarted():
                return
            case _:
                self._tell(self._said.hear(event))

    def _tell(self, text: str) -> None:
        if text:
            self._handle.deliver(Token(self._job.id, 0, text))

    async def _finish(self) -> None:
        if self._error is not None:
            self._handle.deliver(Failed(self._job.id, self._error))
        elif self._is_stopped:
            self._handle.deliver(CancelledEvent(self._job.id))
        else:
            extended = await asyncio.to_thread(self._extended)
            images = extended.get("images", [])
            if images and not self._said.text:
                # a plain client shows what a message holds, and this holds nothing but pictures
                shown = "\n\n".join(f"![image]({uri})" for uri in images)
                self._said.text = shown
                self._tell(shown)
            answer = Completion(self._said.text, (), "stop", 0, 0, extended=extended or None)
            self._handle.deliver(Done(self._job.id, answer))

    def _extended(self) -> dict[str, Any]:
        """Pictures as data URIs, other files as addresses on this server."""
        found: dict[str, list[str]] = {}
        for file in self._said.files:
            kind = mimetypes.guess_type(file["filename"])[0] or ""
            content = self._read(file) if kind.startswith("image/") else None
            if content is not None:
                uri = f"data:{kind};base64,{base64.b64encode(content).decode()}"
                found.setdefault("images", []).append(uri)
            else:
                found.setdefault("files", []).append(f"/view?{urlencode(file)}")
        return found

    def _read(self, file: Mapping[str, str]) -> bytes | None:
        root = self._app[FILES].directories.by_type(file.get("type", "output"))
        if root is None:
            return None
        with contextlib.suppress(OSError):
            return within(root, f"{file.get('subfolder', '')}/{file['filename']}".lstrip("/")).read_bytes()
        return None
