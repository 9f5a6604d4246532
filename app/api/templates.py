"""/workflow_templates: examples for the gallery of an editor, the program's own and those of packs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from app.errors import NotFound
from app.files import within
from app.keys import CONFIG, STARTUP

routes = web.RouteTableDef()

OURS = "Treadle"
_FOLDERS = ("example_workflows", "example", "examples", "workflow", "workflows")


@routes.get("/workflow_templates")
async def list_templates(request: web.Request) -> web.Response:
    def read() -> dict[str, list[str]]:
        folders = _folders(request.app).items()
        return {pack: sorted(path.stem for path in folder.glob("*.json")) for pack, folder in folders}

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/workflow_templates/{pack}/{file}")
async def get_template(request: web.Request) -> web.StreamResponse:
    def find() -> Path:
        folder = _folders(request.app).get(request.match_info["pack"])
        path = None if folder is None else within(folder, request.match_info["file"])
        if path is None or path.suffix not in (".json", ".jpg") or not path.is_file():
            raise NotFound("There is no such template")
        return path

    return web.FileResponse(await asyncio.to_thread(find))


def _folders(app: web.Application) -> dict[str, Path]:
    """Packs are there once they are loaded; a gallery does not wait for them."""
    studio = app[STARTUP].studio
    found = {OURS: app[CONFIG].examples}
    for pack in studio.registry.packs if studio else ():
        folder = next((pack.path / name for name in _FOLDERS if (pack.path / name).is_dir()), None)
        if folder is not None:
            found[pack.name] = folder
    return found
