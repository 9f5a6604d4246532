"""New assets: from an upload, or one more name for a content that the server has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from aiohttp import web
from multidict import MultiDictProxy
from pydantic import BaseModel, Field, ValidationError

from app.api.asset_faults import AssetFault, invalid_body, no_asset, speaks_assets
from app.api.asset_queries import owner_of, plain_tags
from app.api.asset_shapes import as_json
from app.api.assets import check_mime_type, check_preview
from app.api.describe import STRING, UPLOAD, takes
from app.api.read import form, json_body
from app.assets.catalog import HashMismatch
from app.assets.places import NoDestination, mime_type_of
from app.assets.rows import Asset, Named, is_hash
from app.keys import CATALOG

routes = web.RouteTableDef()

_TEXTS = ("hash", "name", "mime_type", "preview_id", "user_metadata")
_FORM = {
    "type": "object",
    "properties": {"file": UPLOAD, **dict.fromkeys((*_TEXTS, "tags"), STRING)},
}
_HASH = r"^blake3:[0-9a-f]{64}$"

Fields = MultiDictProxy[str | bytes | bytearray | web.FileField]


class FromHash(BaseModel):
    hash: str = Field(pattern=_HASH)
    tags: list[str] = Field(min_length=1)
    name: str | None = None
    user_metadata: dict[str, Any] = {}
    mime_type: str | None = None
    preview_id: str | None = None


class Described(BaseModel):
    """The texts of an upload's form."""

    tags: list[str] = Field(min_length=1)
    name: str | None = None
    user_metadata: dict[str, Any] = {}
    mime_type: str | None = None
    preview_id: str | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    file: web.FileField | None
    hash: str | None
    described: Described


@routes.post("/api/assets/from-hash")
@takes(FromHash)
@speaks_assets
async def add_name(request: web.Request) -> web.Response:
    body = await json_body(request, FromHash)
    if await request.app[CATALOG].file_with(body.hash) is None:
        _unknown(body.hash)
    named = await _named(request, Described(**body.model_dump(exclude={"hash"})), body.hash)
    asset = await request.app[CATALOG].assets.add_name(body.hash, named)
    return _created(request, asset, False, status=201)


@routes.post("/api/assets")
@takes(_FORM, "multipart/form-data")
@speaks_assets
async def upload(request: web.Request) -> web.Response:
    """Content that the server has already is not read again: its hash is enough."""
    if not request.content_type.startswith("multipart/"):
        raise AssetFault(415, "UNSUPPORTED_MEDIA_TYPE", "An upload should be multipart/form-data")
    given, catalog = _upload(await form(request)), request.app[CATALOG]
    if given.hash is not None and await catalog.file_with(given.hash) is not None:
        named = await _named(request, given.described, given.hash)
        return _created(request, await catalog.assets.add_name(given.hash, named), False, status=200)
    if given.file is None:
        if given.hash is not None:
            _unknown(given.hash)
        raise AssetFault(400, "MISSING_FILE", "The form has neither a file nor a hash")
    if not given.file.file.read(1):
        raise AssetFault(400, "EMPTY_UPLOAD", "The file is empty")
    named = await _named(request, given.described, given.file.filename)
    try:
        asset, is_new = await catalog.upload(given.file.file, given.file.filename, named, given.hash)
    except HashMismatch as error:
        raise AssetFault(400, "HASH_MISMATCH", str(error)) from None
    except NoDestination as error:
        raise invalid_body(str(error)) from None
    return _created(request, asset, is_new, status=201 if is_new else 200)


def _upload(fields: Fields) -> Upload:
    if "id" in fields:
        raise AssetFault(400, "UNSUPPORTED_FIELD", "Ids are given by the server")
    texts = {name: _text(fields, name) for name in _TEXTS}
    hash, file = texts.pop("hash"), fields.get("file")
    if hash is not None and not is_hash(hash):
        raise AssetFault(400, "INVALID_HASH", "A hash is blake3: and 64 hexadecimal digits")
    if file is not None and not isinstance(file, web.FileField):
        raise AssetFault(400, "MISSING_FILE", "The part named file has no file name")
    said = {name: text for name, text in texts.items() if text is not None}
    try:
        metadata = json.loads(said.get("user_metadata", "{}"))
        described = Described.model_validate({**said, "tags": _tags(fields), "user_metadata": metadata})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise invalid_body("; ".join(faults)) from None
    except (ValueError, RecursionError):
        raise invalid_body("user_metadata should be a JSON object") from None
    return Upload(file, hash, described)


def _text(fields: Fields, name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid_body(f"{name} should be text")
    return value.strip() or None if value is not None else None


def _tags(fields: Fields) -> list[Any]:
    """Each of the fields is a JSON list, or words with commas between them."""
    tags: list[Any] = []
    for text in fields.getall("tags", []):
        if not isinstance(text, str):
            raise invalid_body("tags should be text")
        try:
            listed = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
        except (ValueError, RecursionError):
            raise invalid_body("tags should be a JSON list") from None
        tags += listed
    return [tag for tag in tags if not isinstance(tag, str) or tag.strip()]


async def _named(request: web.Request, described: Described, otherwise: str) -> Named:
    check_mime_type(described.mime_type)
    owner = await owner_of(request)
    await check_preview(request, owner, described.preview_id)
    name = described.name or otherwise
    mime_type = described.mime_type or mime_type_of(name) or mime_type_of(otherwise)
    return Named(
        name, plain_tags(described.tags), described.user_metadata, mime_type, described.preview_id, owner
    )


def _unknown(hash: str) -> NoReturn:
    raise no_asset(hash)


def _created(request: web.Request, asset: Asset, is_new: bool, status: int) -> web.Response:
    return web.json_response(as_json(asset, request.app[CATALOG].places, created_new=is_new), status=status)
