"""How a user's file is handed out: its type, its name, and never as a script of this server."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from aiohttp import web

_SCRIPTS = frozenset({"text/html", "text/css", "text/javascript", "application/javascript", "message/rfc822"})


def guess_type(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def is_script(content_type: str) -> bool:
    """Whether a browser might run it as a page or a script of this server."""
    return content_type in _SCRIPTS or "xml" in content_type


def disposition(name: str, kind: str = "") -> dict[str, str]:
    name = "".join("_" if letter in '"\\' or not letter.isprintable() else letter for letter in name)
    return {"Content-Disposition": f'{kind}filename="{name}"'}


def file_response(path: Path, *, is_image_request: bool = False) -> web.FileResponse:
    content_type = guess_type(path)
    if content_type == "image/svg+xml" and is_image_request:
        # inside an <img> a browser runs no script
        headers = {"Content-Type": content_type, "Vary": "Sec-Fetch-Dest", "Cache-Control": "no-store"}
        return web.FileResponse(path, headers=headers)
    if is_script(content_type):
        harmless = {"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff"}
        return web.FileResponse(path, headers={**harmless, **disposition(path.name, "attachment; ")})
    return web.FileResponse(path, headers={"Content-Type": content_type, **disposition(path.name)})
