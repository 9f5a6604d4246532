"""What packs bring for an editor, and what became of them: translations, subgraphs, stand-ins, tracebacks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from app.compat.host import HOST
from app.keys import STARTUP
from nodes.packs import Pack

log = logging.getLogger(__name__)

routes = web.RouteTableDef()

_PARTS = ("nodeDefs", "commands", "settings")


@routes.get("/packs")
async def listed(request: web.Request) -> web.Response:
    """Every custom node pack: its nodes, the traceback of a failed import, classes that are no nodes."""
    packs = (await request.app[STARTUP].ready()).registry.packs
    return web.json_response([_described(pack) for pack in packs])


@routes.get("/i18n")
async def translations(request: web.Request) -> web.Response:
    """By language; of two packs that translate the same, the later one wins."""
    packs = (await request.app[STARTUP].ready()).registry.packs

    def read() -> dict[str, dict[str, Any]]:
        merged: dict[str, dict[str, Any]] = {}
        for pack in packs:
            for folder in sorted(pack.path.glob("locales/*/")):
                known = merged.setdefault(folder.name, {part: {} for part in _PARTS})
                _merge(known, _object(folder / "main.json"))
                for part in _PARTS:
                    _merge(known, {part: _object(folder / f"{part}.json")})
        return merged

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/global_subgraphs")
async def list_subgraphs(request: web.Request) -> web.Response:
    packs = (await request.app[STARTUP].ready()).registry.packs

    def read() -> dict[str, Any]:
        return {id: entry for id, entry, _ in _subgraphs(packs)}

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/global_subgraphs/{id}")
async def get_subgraph(request: web.Request) -> web.Response:
    """With the file's text as `data`; null for an unknown one."""
    packs = (await request.app[STARTUP].ready()).registry.packs

    def read() -> dict[str, Any] | None:
        wanted = request.match_info["id"]
        found = next(((entry, path) for id, entry, path in _subgraphs(packs) if id == wanted), None)
        return None if found is None else {**found[0], "data": found[1].read_text(errors="replace")}

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/node_replacements")
async def replacements(request: web.Request) -> web.Response:
    await request.app[STARTUP].ready()
    return web.json_response(request.app[HOST].replacements)


def _described(pack: Pack) -> dict[str, Any]:
    return {
        "name": pack.name,
        "nodes": [spec.id for spec in pack.specs],
        "seconds": round(pack.seconds, 3),
        "error": pack.error,
        "refused": dict(pack.refused),
    }


def _subgraphs(packs: list[Pack]) -> Iterator[tuple[str, dict[str, Any], Path]]:
    for pack in packs:
        for path in sorted(pack.path.glob("subgraphs/*.json")):
            id = hashlib.sha256(f"custom_node{path}".encode()).hexdigest()
            entry = {"source": "custom_node", "name": path.stem, "info": {"node_pack": pack.name}}
            yield id, entry, path


def _object(path: Path) -> dict[str, Any]:
    """A pack's broken file must not cost an editor the translations of the others."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        log.warning("%s is left out: %s", path, error)
        return {}
    return value if isinstance(value, dict) else {}


def _merge(known: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(known.get(key), dict):
            _merge(known[key], value)
        else:
            known[key] = value
