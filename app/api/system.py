"""What this server is: versions, devices, features, figures, and what packs bring for an editor."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from aiohttp import web

from app import wire
from app.errors import BadRequest, NotFound
from app.files import within
from app.keys import CONFIG, FILES, METRICS, STARTUP

routes = web.RouteTableDef()

# Clients compare this with what they need; it is the version whose protocol is spoken here.
PROTOCOL_VERSION = "0.33.0"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "0.1.0" if package == "treadle" else "not installed"


TREADLE_VERSION = _version("treadle")


@routes.get("/system_stats")
async def system_stats(request: web.Request) -> web.Response:
    return web.json_response(await asyncio.to_thread(_stats, request.app[CONFIG].argv))


@routes.get("/features")
async def features(request: web.Request) -> web.Response:
    config = request.app[CONFIG]
    return web.json_response(wire.server_features(config.max_upload_bytes, config.assets))


@routes.get("/metrics")
async def metrics(request: web.Request) -> web.Response:
    body = await asyncio.to_thread(request.app[METRICS].text)
    return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


@routes.get("/extensions")
async def pack_scripts(request: web.Request) -> web.Response:
    """URL paths of the scripts that packs bring for an editor."""
    folders = dict((await request.app[STARTUP].ready()).registry.web)

    def find() -> list[str]:
        return [
            f"/extensions/{quote(name)}/{quote(path.relative_to(folder).as_posix())}"
            for name, folder in folders.items()
            for path in sorted(Path(folder).rglob("*.js"))
        ]

    return web.json_response(await asyncio.to_thread(find))


@routes.get("/extensions/{pack}/{path:.+}")
async def pack_file(request: web.Request) -> web.StreamResponse:
    folders = (await request.app[STARTUP].ready()).registry.web
    name = request.match_info["pack"]
    if name not in folders:
        raise NotFound(f"No pack '{name}' has files for an editor")
    path = within(Path(folders[name]), request.match_info["path"])
    if not await asyncio.to_thread(path.is_file):
        raise NotFound("There is no such file")
    return web.FileResponse(path)


@routes.get("/internal/folder_paths")
async def folder_paths(request: web.Request) -> web.Response:
    folders = request.app[FILES].folders
    known = ((name, folders.folder(name)) for name in folders.folder_names())
    return web.json_response({name: [str(root) for root in folder.roots] for name, folder in known if folder})


@routes.get("/internal/files/{type}")
async def user_files(request: web.Request) -> web.Response:
    """Newest first, in the form that the combo of LoadImageOutput takes."""
    kind = request.match_info["type"]
    root = request.app[FILES].directories.by_type(kind)
    if root is None:
        raise BadRequest("Invalid directory type")

    def read() -> list[str]:
        entries = [entry for entry in os.scandir(root) if entry.is_file()] if root.is_dir() else []
        entries.sort(key=lambda entry: -entry.stat().st_mtime)
        return [f"{entry.name} [{kind}]" for entry in entries]

    return web.json_response(await asyncio.to_thread(read))


def _stats(argv: tuple[str, ...]) -> dict[str, Any]:
    memory = psutil.virtual_memory()
    system = {
        "os": sys.platform,
        "ram_total": memory.total,
        "ram_free": memory.available,
        "comfyui_version": PROTOCOL_VERSION,
        "treadle_version": TREADLE_VERSION,
        "required_frontend_version": None,
        "installed_templates_version": None,
        "required_templates_version": None,
        "comfy_package_versions": [],
        "python_version": f"{platform.python_version()} ({platform.python_implementation()})",
        "pytorch_version": _version("torch"),
        "embedded_python": False,
        "deploy_environment": "local-git",
        "argv": ["main.py", *argv],
    }
    return {"system": system, "devices": _devices(memory.total, memory.available)}


def _devices(ram_total: int, ram_free: int) -> list[dict[str, Any]]:
    """The processor as long as torch is not loaded: waiting for it would hold up an editor's start."""
    torch = sys.modules.get("torch")
    # while another thread is importing it the module is there, its parts are not
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "mem_get_info") or not cuda.is_available():
        sizes = {"vram_total": ram_total, "vram_free": ram_free}
        reserved = {"torch_vram_total": ram_total, "torch_vram_free": ram_free}
        return [{"name": "cpu", "type": "cpu", "index": None, **sizes, **reserved}]
    return [_cuda_device(cuda, index) for index in range(cuda.device_count())]


def _cuda_device(cuda: Any, index: int) -> dict[str, Any]:
    free, total = cuda.mem_get_info(index)
    reserved = cuda.memory_reserved(index)
    return {
        "name": f"cuda:{index} {cuda.get_device_name(index)}",
        "type": "cuda",
        "index": index,
        "vram_total": total,
        "vram_free": free,
        "torch_vram_total": reserved,
        "torch_vram_free": reserved - cuda.memory_allocated(index),
    }
