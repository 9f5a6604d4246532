"""The browser editor at /, from the folder that the build left; else a page that says how to build."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from app.errors import NotFound
from app.files import within
from app.keys import CONFIG

_FRESH = {"Cache-Control": "no-store, must-revalidate", "Pragma": "no-cache", "Expires": "0"}
# the build puts a hash of the content into these names
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Treadle</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
  main { max-width: 34rem; margin: 15vh auto; padding: 0 1.5rem; }
  code { padding: .15em .4em; background: color-mix(in srgb, currentColor 12%, transparent); }
</style>
<main>
<h1>The server runs, the editor is not built</h1>
<p>Run <code>make web</code> in the project folder, then reload this page. No Node.js is needed for it.</p>
<p>The API works without the editor: try <a href="object_info">/object_info</a>
or <a href="system_stats">/system_stats</a>.</p>
</main></html>
"""


async def serve(request: web.Request) -> web.StreamResponse:
    root, name = request.app[CONFIG].web_root, request.match_info["path"]
    path = await asyncio.to_thread(_find, root, name)
    if path is None:
        return web.Response(text=_NOT_BUILT, content_type="text/html", headers=_FRESH)
    if path.name == "index.html":
        return web.FileResponse(path, headers=_FRESH)
    return web.FileResponse(path, headers=_FOR_EVER if name.startswith("assets/") else None)


def _find(root: Path, name: str) -> Path | None:
    """None means that the front page was asked for and there is no build."""
    path = within(root, name or "index.html")
    if path.is_file():
        return path
    if name in ("", "index.html"):
        return None
    raise NotFound(f"There is nothing at /{name}")
