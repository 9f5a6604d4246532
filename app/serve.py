"""Runs the application on the addresses of the configuration until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import ssl
import sys
import webbrowser

from aiohttp import web

from app.config import BadConfig, Config
from app.errors import Unavailable
from app.keys import LOGS, STARTUP
from app.logs import LogLines, Logs, Tee
from app.server import build_app

log = logging.getLogger(__name__)


def run_server(config: Config) -> int:
    """The exit status: 1 when a quick test finds that loading fails. Raises `BadConfig`."""
    try:
        return asyncio.run(_serve(config))
    except KeyboardInterrupt:
        return 0


async def _serve(config: Config) -> int:
    app = build_app(config)
    _keep_what_is_said(app[LOGS])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
    try:
        await runner.setup()
    except OSError as error:
        raise BadConfig(f"the directories cannot be prepared: {error}") from None
    try:
        log.info("Starting server\n")
        bound = await listen(runner, config)
        for address in bound:
            log.info("To see the GUI go to: %s", url(config, address))
        if config.quick_test:
            return await _loads(app)
        if config.open_browser:
            await asyncio.to_thread(_open_browser, url(config, bound[0]))
        await told_to_stop()
    finally:
        log.info("Stopping")
        await runner.cleanup()
    return 0


def _keep_what_is_said(logs: Logs) -> None:
    """For /internal/logs. The handlers that there are keep the streams themselves, so nothing comes twice."""
    logging.getLogger().addHandler(LogLines(logs))
    sys.stdout, sys.stderr = Tee(sys.stdout, logs), Tee(sys.stderr, logs)


async def listen(runner: web.AppRunner, config: Config) -> list[str]:
    """The addresses that could be bound: a machine may lack IPv6, for one. Raises when it is none."""
    bound, failures = [], []
    for address in config.listen:
        site = web.TCPSite(runner, address, config.port, reuse_address=True, ssl_context=_tls(config))
        try:
            await site.start()
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
        else:
            bound.append(address)
    if not bound:
        raise BadConfig(f"cannot listen on port {config.port}: {failures[0]}; --port chooses another")
    for failure in failures:
        log.warning("not listening on %s", failure)
    return bound


async def _loads(app: web.Application) -> int:
    try:
        await app[STARTUP].ready()
    except Unavailable as error:
        log.error("%s", error)
        return 1
    return 0


async def told_to_stop() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no handlers of the loop; there KeyboardInterrupt ends the program
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    await stop.wait()


def url(config: Config, address: str) -> str:
    scheme = "http" if config.tls_certificate is None else "https"
    host = f"[{address}]" if ":" in address else address
    return f"{scheme}://{host}:{config.port}"


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls_certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(config.tls_certificate, config.tls_key)
    return context


def _open_browser(address: str) -> None:
    """A machine without one is no fault: the line with the address is printed anyway."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        # what is left then are browsers that would take over the terminal
        return
    reachable = address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(reachable)
