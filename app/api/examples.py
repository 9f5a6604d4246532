"""/examples: the workflows that come with the program, for an editor's menu and a first visit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web

from app.errors import NotFound
from app.files import within
from app.keys import CONFIG

routes = web.RouteTableDef()


@routes.get("/examples")
async def list_examples(request: web.Request) -> web.Response:
    return web.json_response(await asyncio.to_thread(_titles, request.app[CONFIG].examples))


@routes.get("/examples/{name}")
async def get_example(request: web.Request) -> web.Response:
    folder, name = request.app[CONFIG].examples, request.match_info["name"].removesuffix(".json")

    def read() -> Any:
        path = within(folder, f"{name}.json")
        if path.parent != folder or not path.is_file():
            raise NotFound(f"There is no example '{name}'")
        return json.loads(path.read_text())

    return web.json_response(await asyncio.to_thread(read))


def _titles(folder: Path) -> list[dict[str, str]]:
    """A workflow may name itself in `extra.title`; else its file name does."""
    found = []
    for path in sorted(folder.glob("*.json")):
        extra = json.loads(path.read_text()).get("extra") or {}
        title = extra.get("title") or path.stem.replace("_", " ").capitalize()
        found.append({"name": path.stem, "title": title})
    return found
