"""Puts the application together: what it holds, what starts with it, which routes it answers."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence

from aiohttp import web
from aiohttp.typedefs import Middleware

from app import ws
from app.api import (
    asset_scans,
    asset_uploads,
    assets,
    convert,
    editor,
    examples,
    history,
    jobs,
    logs,
    media,
    model_previews,
    objects,
    openapi,
    packs,
    prompts,
    queue,
    system,
    templates,
    userdata,
    users,
)
from app.assets.catalog import Catalog
from app.backlog import Backlog
from app.bus import Bus
from app.compat.host import HOST, Host, set_host
from app.compat.routes import PACK_ROUTES, packs_after_all, packs_around_all
from app.config import Config
from app.database import Database
from app.definitions import Definitions
from app.files import Files
from app.folders import ModelFolders
from app.graph.services import Saved, as_it_is
from app.history import History
from app.jobs import Jobs
from app.keys import (
    BUS,
    CATALOG,
    CONFIG,
    DATABASE,
    DEFINITIONS,
    FILES,
    HISTORY,
    JOBS,
    LOGS,
    METRICS,
    STARTUP,
    USERS,
)
from app.logs import Logs
from app.metrics import Metrics
from app.middleware import allow_origin, cache_headers, compress, errors_as_json, guard_origin
from app.openai import chat, completions, models, responses
from app.openai.response_store import RESPONSES, ResponseStore
from app.queue import JobQueue
from app.startup import Startup, Studio, load
from app.users import Users

log = logging.getLogger(__name__)

Loader = Callable[[Config, Files, Metrics], Studio]

_RESOURCES = (
    convert,
    examples,
    history,
    jobs,
    logs,
    media,
    model_previews,
    objects,
    openapi,
    packs,
    prompts,
    queue,
    system,
    templates,
    userdata,
    users,
)
_OPENAI = (chat, completions, models, responses)
# fixed paths before those that end in an id
_ASSETS = (asset_scans, asset_uploads, assets)
_DATABASE_FILE = "treadle.sqlite"
_QUEUE_LOCK = "treadle.queue.lock"


def build_studio(config: Config, files: Files, metrics: Metrics) -> Studio:
    return load(config, files, metrics.llm_forward, metrics.diffusion_forward, metrics.llm_times.observe)


def build_app(config: Config, loader: Loader = build_studio) -> web.Application:
    """Nothing is read, written or started before the application runs."""
    app = web.Application(middlewares=_middlewares(config), client_max_size=config.max_upload_bytes)
    waiting = JobQueue(config.max_running_jobs)
    metrics = Metrics(queue_length=lambda: waiting.remaining)
    files = Files(config.directories, ModelFolders(config.directories, config.extra_model_paths))
    startup = Startup(lambda: metrics.watched(loader(config, files, metrics)))
    database = Database(config.directories.user / _DATABASE_FILE)
    backlog = Backlog(database, config.directories.user / _QUEUE_LOCK)
    bus, past = Bus(first_number=time.time_ns() // 1_000_000), History(database)
    app[CONFIG], app[FILES], app[METRICS], app[STARTUP] = config, files, metrics, startup
    app[BUS], app[DATABASE], app[HISTORY] = bus, database, past
    app[DEFINITIONS], app[LOGS] = Definitions(files), Logs(bus.publish)
    app[USERS] = Users(config.directories.user, config.multi_user)
    saved: Saved = as_it_is
    if config.assets:
        app[CATALOG] = Catalog(database, files, bus.publish, config.asset_hashing)
        saved = app[CATALOG].saved
    app[JOBS] = Jobs(config, waiting, files, bus, past, backlog, startup, metrics, saved)
    app[RESPONSES] = ResponseStore()
    app[HOST] = Host(config, files, publish=bus.publish, jobs=app[JOBS])
    app[PACK_ROUTES] = app[HOST].routes
    app[ws.OPEN_SOCKETS] = set()
    app.cleanup_ctx.extend([_directories, _database, _work])
    app.on_shutdown.append(ws.close_all)
    _add_routes(app)
    return app


async def _directories(app: web.Application) -> AsyncIterator[None]:
    files = app[FILES]
    await asyncio.to_thread(shutil.rmtree, files.directories.temp, ignore_errors=True)
    await asyncio.to_thread(files.make_directories)
    yield
    await asyncio.to_thread(shutil.rmtree, files.directories.temp, ignore_errors=True)


async def _database(app: web.Application) -> AsyncIterator[None]:
    await app[DATABASE].open()
    if CATALOG in app:
        await app[CATALOG].open()
    yield
    if CATALOG in app:
        await app[CATALOG].close()
    await app[DATABASE].close()


async def _work(app: web.Application) -> AsyncIterator[None]:
    app[HOST].loop = asyncio.get_running_loop()
    set_host(app[HOST])
    app[STARTUP].begin()
    await app[JOBS].open()
    yield
    await app[JOBS].close()
    await app[STARTUP].close()


def _middlewares(config: Config) -> list[Middleware]:
    origin = guard_origin if config.cors_origin is None else allow_origin(config.cors_origin)
    outer = [cache_headers, compress] if config.compress_bodies else [cache_headers]
    return [*outer, origin, errors_as_json, packs_around_all, packs_after_all]


def _add_routes(app: web.Application) -> None:
    """Every route plain and below /api, except what browsers fetch by plain paths only."""
    app.router.add_get("/ws", ws.connect)
    app.router.add_get("/api/ws", ws.connect)
    resources = (*_RESOURCES, *_OPENAI, *(_ASSETS if CATALOG in app else ()))
    described = [route for resource in resources for route in resource.routes]
    app[openapi.DOCUMENT] = openapi.described(_definitions(described), system.TREADLE_VERSION)
    for route in _definitions([*described, *(() if CATALOG in app else assets.disabled_routes)]):
        route.register(app.router)
        if not route.path.startswith("/internal/"):
            below = web.RouteDef(route.method, f"/api{route.path}", route.handler, route.kwargs)
            below.register(app.router)
    app.router.add_get("/{path:.*}", editor.serve)


def _definitions(routes: Sequence[web.AbstractRouteDef]) -> list[web.RouteDef]:
    definitions = [route for route in routes if isinstance(route, web.RouteDef)]
    assert len(definitions) == len(routes), "files are served by handlers of their own"
    return definitions
