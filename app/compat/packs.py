"""Loads packs as ComfyUI does: scripts that run before everything, then imports, each within a time limit.

A pack that fails, leaves the process or never ends costs itself alone.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import logging
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from app.compat.finder import install
from app.compat.host import host
from app.compat.v3.api import run_to_end
from nodes.packs import Pack, load_pack, pack_paths
from nodes.registry import Registry

log = logging.getLogger(__name__)

IMPORT_LIMIT_S = 300.0


def run_prestartup(folders: Iterable[Path], allowed: Iterable[str] | None) -> None:
    """`prestartup_script.py` of each pack, before torch is imported; what fails is logged."""
    install(tuple(folders))
    for path in _wanted(folders, allowed):
        script = path / "prestartup_script.py"
        if script.is_file():
            error = within_time(functools.partial(_run_script, script, path.name), path.name)
            if error is not None:
                log.error("the prestartup script of the pack %s failed:\n%s", path.name, error)


def load_packs(registry: Registry, folders: Iterable[Path], allowed: Iterable[str] | None) -> None:
    """Fills the registry. The prestartup scripts have run."""
    for path in _wanted(folders, allowed):
        registry.add_pack(load_within_time(path))


def load_within_time(path: Path, limit_s: float = IMPORT_LIMIT_S) -> Pack:
    name = path.name.removesuffix(".py")
    loaded: list[Pack] = []

    def load() -> None:
        loaded.append(load_pack(path, run_to_end))

    error = within_time(load, name, limit_s)
    if loaded:
        return loaded[0]
    log.error("custom node pack %s could not be imported:\n%s", name, error)
    return Pack(name, path, error=error)


def within_time(function: Callable[[], None], pack: str, limit_s: float = IMPORT_LIMIT_S) -> str | None:
    """What went wrong, or None. Nothing stops a thread from outside: one that is late goes on, unheard."""
    errors: list[str] = []

    def run() -> None:
        loop = host().loop
        asyncio.set_event_loop(loop)
        try:
            function()
        # foreign code; in a thread of its own even a SystemExit ends nothing but this
        except BaseException:
            errors.append(traceback.format_exc())
        finally:
            asyncio.set_event_loop(None)

    thread = threading.Thread(target=run, name=f"load {pack}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        return f"the pack was not ready within {limit_s:.0f} seconds, and is left out"
    return errors[0] if errors else None


def _wanted(folders: Iterable[Path], allowed: Iterable[str] | None) -> list[Path]:
    names = None if allowed is None else frozenset(allowed)
    return [path for root in folders for path in pack_paths(root) if names is None or path.name in names]


def _run_script(script: Path, pack: str) -> None:
    name = f"prestartup_of_{pack}"
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
