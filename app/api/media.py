"""/view, /upload/image and /upload/mask: media in and out of the three user directories."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal

from aiohttp import web

from app import pictures
from app.api.asset_queries import owner_of
from app.api.asset_shapes import in_short
from app.api.content import disposition, file_response
from app.api.describe import STRING, UPLOAD, takes
from app.api.read import form
from app.assets.rows import is_hash
from app.errors import BadRequest, NotFound
from app.files import Files, UnsafeName, split_annotation, within
from app.keys import CATALOG, FILES

routes = web.RouteTableDef()

_FORM = {
    "type": "object",
    "properties": {
        "image": UPLOAD,
        "type": STRING,
        "subfolder": STRING,
        "overwrite": STRING,
        "original_ref": STRING,
    },
}


@dataclass(frozen=True, slots=True)
class Upload:
    """`original` names the picture that a mask belongs to."""

    content: IO[bytes]
    name: str
    kind: str
    subfolder: str
    overwrite: bool
    original: str


@routes.get("/view")
@takes(filename=STRING, type=STRING, subfolder=STRING, preview=STRING, channel=STRING)
async def view(request: web.Request) -> web.StreamResponse:
    query = request.query
    if "filename" not in query:
        raise NotFound("filename is missing")
    kind, subfolder = query.get("type", "output"), query.get("subfolder", "")
    if CATALOG in request.app and is_hash(query["filename"]):
        found = await request.app[CATALOG].file_with(query["filename"])
        if found is None:
            raise NotFound(f"There is no file with the hash {query['filename']}")
        path = found
    else:
        path = await asyncio.to_thread(existing, request.app[FILES], query["filename"], kind, subfolder)
    if "preview" in query:
        return await _picture(path, lambda: pictures.preview(path, query["preview"]))
    if query.get("channel") == "rgb":
        return await _picture(path, lambda: pictures.without_alpha(path))
    if query.get("channel") == "a":
        return await _picture(path, lambda: pictures.alpha_only(path))
    return file_response(path, is_image_request=request.headers.get("Sec-Fetch-Dest") == "image")


@routes.post("/upload/image")
@takes(_FORM, "multipart/form-data")
async def upload_image(request: web.Request) -> web.Response:
    upload = await _upload(request)
    return await _answer(request, await asyncio.to_thread(_store, request.app[FILES], upload))


@routes.post("/upload/mask")
@takes(_FORM, "multipart/form-data")
async def upload_mask(request: web.Request) -> web.Response:
    """The alpha of the upload is put on the picture that `original_ref` names."""
    upload = await _upload(request)
    return await _answer(request, await asyncio.to_thread(_store_mask, request.app[FILES], upload))


async def _answer(request: web.Request, stored: dict[str, str]) -> web.Response:
    """Where the file lies, and the asset that it has become."""
    if CATALOG not in request.app:
        return web.json_response(stored)
    path = _root(request.app[FILES], stored["type"]) / stored["subfolder"] / stored["name"]
    asset = await request.app[CATALOG].uploaded(path, await owner_of(request))
    return web.json_response(stored if asset is None else {**stored, "asset": in_short(asset)})


async def _picture(path: Path, make: Callable[[], tuple[bytes, str]]) -> web.Response:
    body, content_type = await asyncio.to_thread(make)
    return web.Response(body=body, content_type=content_type, headers=disposition(path.name))


async def _upload(request: web.Request) -> Upload:
    fields = await form(request)
    field = fields.get("image")
    if not isinstance(field, web.FileField) or not field.filename:
        raise BadRequest("The form has no file named image")

    def text(name: str, default: str = "") -> str:
        value = fields.get(name, default)
        if not isinstance(value, str):
            raise BadRequest(f"{name} should be text, not a file")
        return value

    return Upload(
        content=field.file,
        name=field.filename,
        kind=text("type") or "input",
        subfolder=text("subfolder"),
        overwrite=text("overwrite").lower() in ("true", "1"),
        original=text("original_ref"),
    )


def _root(files: Files, kind: str) -> Path:
    root = files.directories.by_type(kind)
    if root is None:
        raise BadRequest("type must be input, output or temp")
    return root


def existing(files: Files, filename: str, kind: str, subfolder: str) -> Path:
    name, annotated = split_annotation(filename)
    if not name or name.startswith("/") or ".." in name or "\0" in name:
        raise BadRequest("filename is not a plain file name")
    folder = within(_root(files, annotated or kind), subfolder)
    path = within(folder, Path(name).name)
    if not path.is_file():
        raise NotFound(f"There is no file {name}")
    return path


def _store(files: Files, upload: Upload) -> dict[str, str]:
    """Equal content keeps the old name, other content gets ` (1)`, ` (2)` ... unless it may overwrite."""
    root = _root(files, upload.kind)
    try:
        folder = within(root, upload.subfolder)
        path = within(folder, upload.name)
        within(root, str(path.relative_to(root)))
    except UnsafeName as error:
        raise BadRequest(str(error)) from None
    if path == folder:
        raise BadRequest("The file has no name")
    path.parent.mkdir(parents=True, exist_ok=True)
    if upload.overwrite:
        _write(path, upload.content, "wb")
    else:
        path = _write_apart(path, upload.content)
    stored_in = path.parent.relative_to(root).as_posix()
    return {"name": path.name, "subfolder": "" if stored_in == "." else stored_in, "type": upload.kind}


def _write(path: Path, content: IO[bytes], mode: Literal["wb", "xb"]) -> None:
    content.seek(0)
    with path.open(mode) as target:
        shutil.copyfileobj(content, target)


def _write_apart(first: Path, content: IO[bytes]) -> Path:
    path, number = first, 0
    while True:
        try:
            _write(path, content, "xb")
        except FileExistsError:
            if path.is_file() and _is_same(path, content):
                return path
            number += 1
            path = first.with_name(f"{first.stem} ({number}){first.suffix}")
        else:
            return path


def _store_mask(files: Files, upload: Upload) -> dict[str, str]:
    try:
        reference = json.loads(upload.original)
        name = str(reference["filename"])
        kind, subfolder = str(reference.get("type") or "output"), str(reference.get("subfolder") or "")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadRequest("original_ref should be JSON with a filename") from None
    original = existing(files, name, kind, subfolder)
    return _store(files, replace(upload, content=pictures.with_alpha_of(original, upload.content)))


def _is_same(path: Path, content: IO[bytes]) -> bool:
    content.seek(0)
    with path.open("rb") as existing:
        while True:
            ours, theirs = existing.read(1 << 20), content.read(1 << 20)
            if ours != theirs:
                return False
            if not ours:
                return True
