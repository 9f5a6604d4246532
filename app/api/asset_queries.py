"""What requests of the assets API ask for, as filters and pages. Faults become AssetFault."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web
from pydantic import BaseModel, Field

from app.api.asset_faults import AssetFault, invalid_query
from app.api.read import query_flag, query_int
from app.api.users import user_id
from app.assets.filters import SORT_COLUMNS, Filters, Window
from app.assets.rows import EVERYBODY
from app.errors import BadRequest
from app.keys import USERS
from app.users import SINGLE_USER

MAX_TAGS = 100
_OLD_NAMES = {"tags_all": "include_tags", "tags_none": "exclude_tags"}


class TagList(BaseModel):
    tags: list[str] = Field(min_length=1)


async def owner_of(request: web.Request) -> str:
    """Without several users, everything is everybody's."""
    users = request.app[USERS]
    if not users.multi:
        return EVERYBODY
    await asyncio.to_thread(users.folder, user_id(request))
    return user_id(request) or SINGLE_USER


async def filters_of(request: web.Request, job_id: str | None = None) -> Filters:
    tags_all, all_name = _tags(request, "tags_all")
    tags_none, none_name = _tags(request, "tags_none")
    tags_any, _ = _tags(request, "tags_any")
    both = [tag for tag in tags_all if tag in tags_none]
    # programs that only know the old names have always got an empty list
    if both and (all_name, none_name) != ("include_tags", "exclude_tags"):
        raise _wrong_tags(
            "A tag is both asked for and excluded", conflicting_tags=both, parameters=[all_name, none_name]
        )
    return Filters(
        owner=await owner_of(request),
        with_public=query_flag(request, "include_public", default=True),
        tags_all=tags_all,
        tags_any=tags_any,
        tags_none=tags_none,
        name_contains=text(request, "name_contains"),
        metadata=_metadata(request),
        hash=text(request, "hash") or None,
        job_id=job_id,
    )


def window_of(request: web.Request) -> Window:
    sort, order = request.query.get("sort", "created_at"), request.query.get("order", "desc")
    if sort not in SORT_COLUMNS:
        raise invalid_query(f"sort should be one of {', '.join(SORT_COLUMNS)}")
    if order not in ("asc", "desc"):
        raise invalid_query("order should be asc or desc")
    limit, offset = number(request, "limit", 20, 1, 500), number(request, "offset", 0, 0, 2**62)
    return Window(limit, offset, sort, order == "desc", request.query.get("after") or None)


def number(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    try:
        value = query_int(request, name, default)
    except BadRequest as error:
        raise invalid_query(str(error)) from None
    assert value is not None
    if not least <= value <= most:
        raise invalid_query(f"{name} should be from {least} to {most}")
    return value


def plain_tags(tags: list[str]) -> tuple[str, ...]:
    """Without blanks around them, empty ones and repetitions."""
    return tuple(dict.fromkeys(stripped for tag in tags if (stripped := tag.strip())))


def _tags(request: web.Request, name: str) -> tuple[tuple[str, ...], str]:
    """The tags, and by which of its two names they were given."""
    given = {}
    for spelling in (name, _OLD_NAMES.get(name)):
        if spelling is None:
            continue
        tags = plain_tags([tag for text in request.query.getall(spelling, []) for tag in text.split(",")])
        if len(tags) > MAX_TAGS:
            raise _wrong_tags(
                f"{spelling} has too many tags", parameter=spelling, max=MAX_TAGS, count=len(tags)
            )
        if tags:
            given[spelling] = tags
    if len(given) > 1:
        raise _wrong_tags("One filter was given under both of its names", parameters=sorted(given))
    return next(((tags, spelling) for spelling, tags in given.items()), ((), name))


def _wrong_tags(text: str, **details: Any) -> AssetFault:
    return AssetFault(400, "INVALID_TAG_FILTER", text, **details)


def text(request: web.Request, name: str) -> str:
    given = request.query.get(name, "")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise invalid_query(f"{name} holds what is no character") from None
    return given


def _metadata(request: web.Request) -> dict[str, Any]:
    try:
        asked = json.loads(request.query.get("metadata_filter") or "{}")
    except (ValueError, RecursionError):
        raise invalid_query("metadata_filter should be JSON") from None
    if not isinstance(asked, dict):
        raise invalid_query("metadata_filter should be a JSON object")
    return asked
