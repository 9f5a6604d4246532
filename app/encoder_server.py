"""The program as an encoder process: features of one model's media over HTTP, and nothing else."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from app.config import BadConfig, Config
from app.files import Files
from app.folders import ModelFolders
from app.middleware import errors_as_json, guard_origin
from app.serve import listen, told_to_stop, url
from app.startup import choose_device
from runtime.llm import encoder_wire
from runtime.llm.encoder import Encoder
from runtime.platform.errors import RuntimeFault

log = logging.getLogger(__name__)

ENCODER: web.AppKey[Encoder] = web.AppKey("encoder")


def run_encoder(config: Config) -> int:
    """The exit status. Raises `BadConfig`."""
    app = build_encoder_app(config)
    try:
        return asyncio.run(_serve(app, config))
    except KeyboardInterrupt:
        return 0


async def _serve(app: web.Application, config: Config) -> int:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
    await runner.setup()
    try:
        for address in await listen(runner, config):
            log.info("The encoder of %s is at: %s", app[ENCODER].name, url(config, address))
        if not config.quick_test:
            await told_to_stop()
    finally:
        await runner.cleanup()
    return 0


def build_encoder_app(config: Config) -> web.Application:
    """Blocks until the encoder is loaded; raises `BadConfig` when it cannot be."""
    files = Files(config.directories, ModelFolders(config.directories, config.extra_model_paths))
    assert config.encoder_only is not None, "no model is named"
    try:
        encoder = Encoder(config.encoder_only, files.language_model_paths(), device=choose_device(config))
    except RuntimeFault as fault:
        raise BadConfig(f"--encoder-only: {fault}") from None
    app = web.Application(middlewares=[guard_origin, errors_as_json], client_max_size=config.max_upload_bytes)
    app[ENCODER] = encoder
    app.router.add_post(encoder_wire.PATH, encode)
    app.router.add_get("/health", health)
    app.on_cleanup.append(_close)
    return app


async def encode(request: web.Request) -> web.Response:
    asked = await asyncio.to_thread(encoder_wire.read_question, await request.read())
    features = await asyncio.wrap_future(request.app[ENCODER].submit(asked))
    body = await asyncio.to_thread(encoder_wire.answer, features)
    return web.Response(body=body, content_type="application/octet-stream")


async def health(request: web.Request) -> web.Response:
    encoder = request.app[ENCODER]
    return web.json_response({"model": encoder.name, "fingerprint": encoder.fingerprint, **encoder.counts})


async def _close(app: web.Application) -> None:
    await asyncio.to_thread(app[ENCODER].close)
