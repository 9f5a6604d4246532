"""What the faces stand on: one record of this process's server, set before the first pack is imported.

Packs reach for globals, so this is one; nothing outside app.compat reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from app.compat.routes import PackRoutes
from app.config import Config
from app.events import Event
from app.files import Files
from nodes.registry import Registry


class JobList(Protocol):
    """What packs ask about the queue."""

    def remaining(self) -> int: ...

    def interrupt(self, job_id: str | None = None) -> bool: ...


OnPrompt = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(slots=True, eq=False)
class Host:
    """`loop` is the server's; without a server it is None, and events go nowhere."""

    config: Config
    files: Files
    registry: Registry = field(default_factory=Registry)
    publish: Callable[[Event], None] = lambda _event: None
    loop: asyncio.AbstractEventLoop | None = None
    jobs: JobList | None = None
    replacements: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    on_prompt: list[OnPrompt] = field(default_factory=list)
    routes: PackRoutes = field(default_factory=PackRoutes)
    unload: Callable[[], None] = lambda: None


HOST = web.AppKey("host", Host)

_hosts: list[Host] = []


def set_host(host: Host) -> None:
    """The last one set counts; tests set their own."""
    _hosts[:] = [host]


def host() -> Host:
    if not _hosts:
        raise RuntimeError("no server of this program stands behind ComfyUI's modules in this process")
    return _hosts[0]


def find_host() -> Host | None:
    return _hosts[0] if _hosts else None
