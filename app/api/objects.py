"""/object_info, /models, /embeddings and /view_metadata: what nodes and models there are."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from aiohttp import web

from app.api.describe import STRING, takes
from app.definitions import Described
from app.errors import NotFound
from app.files import Files, within_by_name
from app.keys import DEFINITIONS, FILES, STARTUP

routes = web.RouteTableDef()

_LARGEST_HEADER = 1 << 20


@routes.get("/object_info")
async def every_node(request: web.Request) -> web.Response:
    studio = await request.app[STARTUP].ready()
    return _answer(request, await request.app[DEFINITIONS].every(studio.registry))


@routes.get("/object_info/{id}")
async def one_node(request: web.Request) -> web.Response:
    studio = await request.app[STARTUP].ready()
    described = await request.app[DEFINITIONS].one(studio.registry, request.match_info["id"])
    return _answer(request, described)


@routes.get("/models")
async def model_folders(request: web.Request) -> web.Response:
    return web.json_response(request.app[FILES].folders.folder_names())


@routes.get("/models/{folder}")
async def model_names(request: web.Request) -> web.Response:
    files, folder = request.app[FILES], request.match_info["folder"]
    if files.folders.folder(folder) is None:
        raise NotFound(f"There is no model folder '{folder}'")
    return web.json_response(await asyncio.to_thread(files.names, folder))


@routes.get("/embeddings")
async def embeddings(request: web.Request) -> web.Response:
    names = await asyncio.to_thread(request.app[FILES].names, "embeddings")
    return web.json_response([os.path.splitext(name)[0] for name in names])


@routes.get("/experiment/models")
async def described_folders(request: web.Request) -> web.Response:
    folders = request.app[FILES].folders
    answer = []
    for name in folders.folder_names():
        folder = folders.folder(name)
        if folder is not None and name not in ("configs", "custom_nodes"):
            roots = [str(root) for root in folder.roots]
            answer.append({"name": name, "folders": roots, "extensions": sorted(folder.extensions)})
    return web.json_response(answer)


@routes.get("/experiment/models/{folder}")
async def described_models(request: web.Request) -> web.Response:
    files, folder = request.app[FILES], request.match_info["folder"]
    if files.folders.folder(folder) is None:
        raise NotFound(f"There is no model folder '{folder}'")
    return web.json_response(await asyncio.to_thread(_files_of, files, folder))


@routes.get("/view_metadata/{folder}")
@takes(filename=STRING)
async def safetensors_metadata(request: web.Request) -> web.Response:
    folder = request.app[FILES].folders.folder(request.match_info["folder"])
    name = request.query.get("filename", "")
    if folder is None or not name.endswith(".safetensors"):
        raise NotFound("Only .safetensors files of a model folder have metadata")
    return web.json_response(await asyncio.to_thread(_metadata, folder.roots, name))


def _answer(request: web.Request, described: Described) -> web.Response:
    """Nothing but its name for a client that has this text already."""
    headers = {"ETag": f'"{described.etag}"', "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    known = request.if_none_match or ()
    if any(tag.value in (described.etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    body = described.body
    if _reads_gzip(request.headers.get("Accept-Encoding", "")):
        body = described.zipped
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, content_type="application/json", headers=headers)


def _reads_gzip(accepted: str) -> bool:
    codings = [coding.replace(" ", "").lower() for coding in accepted.split(",")]
    return any(coding.partition(";")[0] == "gzip" and not coding.endswith(";q=0") for coding in codings)


def _files_of(files: Files, folder: str) -> list[dict[str, Any]]:
    known = files.folders.folder(folder)
    assert known is not None
    found = []
    for name in files.names(folder):
        for index, root in enumerate(known.roots):
            path = root / name
            if path.exists():
                status = path.stat()
                times = {"modified": status.st_mtime, "created": status.st_ctime}
                found.append({"name": name, "pathIndex": index, **times, "size": status.st_size})
                break
    return found


def _metadata(roots: tuple[Path, ...], name: str) -> Any:
    path = next((path for root in roots if (path := within_by_name(root, name)).is_file()), None)
    if path is None:
        raise NotFound(f"There is no model {name}")
    return metadata_of(path, _LARGEST_HEADER)


def metadata_of(path: Path, largest_header: int) -> Any:
    """Of a safetensors file; raises `NotFound` where there is none."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= largest_header:
            raise NotFound(f"{path.name} has no header that can be read")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise NotFound(f"{path.name} has no header that can be read") from None
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if metadata is None:
        raise NotFound(f"{path.name} has no metadata")
    return metadata
