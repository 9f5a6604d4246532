"""/experiment/models/preview: a picture of a model, from the file beside it or from inside it, as WebP."""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import json
from pathlib import Path
from typing import IO

from aiohttp import web

from app import pictures
from app.api.objects import metadata_of
from app.errors import NotFound
from app.files import within_by_name
from app.folders import Folder
from app.keys import FILES

routes = web.RouteTableDef()

_PICTURES = (".webp", ".png", ".jpg", ".jpeg")
_COVERS = "ssmd_cover_images"
_LARGEST_HEADER = 16 << 20


@routes.get("/experiment/models/preview/{folder}/{path_index}/{filename:.+}")
async def preview(request: web.Request) -> web.Response:
    """`path_index` counts the folder's directories, as /experiment/models lists them."""
    folder = request.app[FILES].folders.folder(request.match_info["folder"])
    body, content_type = await asyncio.to_thread(
        _preview, folder, request.match_info["path_index"], request.match_info["filename"]
    )
    return web.Response(body=body, content_type=content_type)


def _preview(folder: Folder | None, path_index: str, filename: str) -> tuple[bytes, str]:
    if folder is None or not path_index.isdecimal() or int(path_index) >= len(folder.roots):
        raise NotFound("There is no such model folder")
    model = within_by_name(folder.roots[int(path_index)], filename)
    picture = _beside(model) or _inside(model)
    if picture is None:
        raise NotFound(f"{filename} has no preview")
    return pictures.preview(picture, "webp;90")


def _beside(model: Path) -> Path | None:
    """`model.png` before `model.preview.png`."""
    names = [f"{model.stem}{middle}{end}" for middle in ("", ".preview") for end in _PICTURES]
    candidates = (model.with_name(name) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def _inside(model: Path) -> IO[bytes] | None:
    """The first cover that a safetensors file carries, as base64 in a list of its metadata."""
    if model.suffix != ".safetensors" or not model.is_file():
        return None
    try:
        covers = json.loads(metadata_of(model, _LARGEST_HEADER)[_COVERS])
        return io.BytesIO(base64.b64decode(covers[0]))
    except (NotFound, KeyError, IndexError, TypeError, ValueError, binascii.Error):
        return None
