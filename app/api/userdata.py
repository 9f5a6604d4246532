"""/userdata and /v2/userdata: workflows and other files that an editor keeps for each user."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from aiohttp import web

from app.api.content import file_response
from app.api.describe import FLAG, STRING, UPLOAD, takes
from app.api.read import query_flag
from app.api.users import user_folder
from app.errors import BadRequest, Conflict, NotFound
from app.files import within

routes = web.RouteTableDef()


@routes.get("/userdata")
@takes(dir=STRING, recurse=FLAG, full_info=FLAG, split=FLAG)
async def list_files(request: web.Request) -> web.Response:
    if not request.query.get("dir"):
        raise BadRequest("Directory not provided")
    recurse, full_info, split = (query_flag(request, name) for name in ("recurse", "full_info", "split"))

    def read() -> list[Any]:
        folder = within(user_folder(request), request.query["dir"])
        if not folder.is_dir():
            raise NotFound("There is no such directory")
        found = folder.rglob("*") if recurse else folder.glob("*")
        paths = sorted(path for path in found if path.is_file())
        if full_info:
            return [_described(path, folder) for path in paths]
        names = [path.relative_to(folder).as_posix() for path in paths]
        return [[name, *name.split("/")] for name in names] if split else names

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/v2/userdata")
@takes(path=STRING)
async def list_entries(request: web.Request) -> web.Response:
    def read() -> list[dict[str, Any]]:
        root = user_folder(request)
        folder = within(root, request.query.get("path", ""))
        if not folder.is_dir():
            raise NotFound("There is no such directory")
        return [_entry(entry, root) for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)]

    return web.json_response(await asyncio.to_thread(read))


@routes.get("/userdata/{file}")
async def get_file(request: web.Request) -> web.StreamResponse:
    def find() -> Path:
        path = _path(request, "file")
        if not path.is_file():
            raise NotFound("There is no such file")
        return path

    path = await asyncio.to_thread(find)
    if path.name == "user.css":
        return web.FileResponse(
            path, headers={"Content-Type": "text/css", "X-Content-Type-Options": "nosniff"}
        )
    return file_response(path)


@routes.post("/userdata/{file}")
@takes(UPLOAD, "application/octet-stream", overwrite=FLAG, full_info=FLAG)
async def put_file(request: web.Request) -> web.Response:
    body = await request.read()

    def write() -> Path:
        path = _free_path(request, "file")
        temporary = path.with_name(f".{path.name}.partial")
        temporary.write_bytes(body)
        temporary.replace(path)
        return path

    return await _stored(request, await asyncio.to_thread(write))


@routes.delete("/userdata/{file}")
async def delete_file(request: web.Request) -> web.Response:
    def remove() -> None:
        path = _path(request, "file")
        if not path.is_file():
            raise NotFound("There is no such file")
        path.unlink()

    await asyncio.to_thread(remove)
    return web.Response(status=204)


@routes.post("/userdata/{file}/move/{dest}")
@takes(overwrite=FLAG, full_info=FLAG)
async def move_file(request: web.Request) -> web.Response:
    def move() -> Path:
        source = _path(request, "file")
        if not source.is_file():
            raise NotFound("There is no such file")
        target = _free_path(request, "dest")
        source.replace(target)
        return target

    return await _stored(request, await asyncio.to_thread(move))


def _path(request: web.Request, part: str) -> Path:
    root = user_folder(request)
    path = within(root, request.match_info[part])
    if path == root:
        raise BadRequest("The file has no name")
    return path


def _free_path(request: web.Request, part: str) -> Path:
    path = _path(request, part)
    if path.is_dir() or (path.exists() and not query_flag(request, "overwrite", default=True)):
        raise Conflict("File already exists")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def _stored(request: web.Request, path: Path) -> web.Response:
    def describe() -> Any:
        root = user_folder(request)
        return (
            _described(path, root) if query_flag(request, "full_info") else path.relative_to(root).as_posix()
        )

    return web.json_response(await asyncio.to_thread(describe))


def _described(path: Path, root: Path) -> dict[str, Any]:
    status = path.stat()
    return {
        "path": path.relative_to(root).as_posix(),
        "size": status.st_size,
        "modified": int(status.st_mtime * 1000),
        "created": int(status.st_ctime * 1000),
    }


def _entry(entry: os.DirEntry[str], root: Path) -> dict[str, Any]:
    named = {"name": entry.name, "path": Path(entry.path).relative_to(root).as_posix()}
    if entry.is_dir():
        return {**named, "type": "directory"}
    status = entry.stat()
    return {**named, "type": "file", "size": status.st_size, "modified": status.st_mtime}
