"""Loads what is slow to import (torch, the runtimes, the nodes) beside a server that already listens."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.compat.host import Host, find_host, host, set_host
from app.compat.packs import load_packs, run_prestartup
from app.config import Config
from app.errors import Unavailable
from app.events import Event
from app.files import Files
from app.graph.cache import ResultCache
from app.graph.loops import PackLoops
from app.graph.services import MAX_THREADS, Saved, Services, as_it_is
from app.graph.turns import PackTurns
from nodes.registry import Registry
from runtime.diffusion.api import DiffusionRuntime
from runtime.llm.api import LanguageRuntime

if TYPE_CHECKING:
    from runtime.llm.stopwatch import OnTime

log = logging.getLogger(__name__)

OnForward = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Studio:
    """What running a graph needs."""

    registry: Registry
    llm: LanguageRuntime
    diffusion: DiffusionRuntime

    def unload(self) -> None:
        """Weights that nothing running needs."""
        self.llm.unload()
        self.diffusion.unload()

    def close(self) -> None:
        self.diffusion.close()
        self.llm.close()


def load(
    config: Config,
    files: Files,
    on_llm_forward: OnForward,
    on_diffusion_forward: OnForward,
    on_llm_time: OnTime | None = None,
) -> Studio:
    """Blocks for seconds; raises when a part of the program itself cannot be loaded."""
    if find_host() is None:
        set_host(Host(config, files))
    run_prestartup(_pack_folders(files), _allowed(config))
    # imported here and not above, because the server listens before these are there
    from runtime.diffusion.engine import Engine as DiffusionEngine
    from runtime.llm import custom_runner
    from runtime.llm.engine import Engine as LanguageEngine
    from runtime.llm.runner import Runner

    registry = load_nodes(config, files)
    device = choose_device(config)
    named = config.custom_model_runner
    models = files.language_model_paths
    studio = Studio(
        registry=registry,
        llm=LanguageEngine(
            models=models,
            adapters=files.adapter_paths,
            encoder_url=config.encoder_url,
            device=device,
            mem_fraction_static=config.mem_fraction_static,
            prefix_cache=config.prefix_cache,
            speculative_algorithm=config.writing.speculative_algorithm,
            num_draft_tokens=config.writing.num_draft_tokens,
            dllm_algorithm=config.writing.dllm_algorithm,
            dllm_settings=dict(config.writing.dllm_settings),
            runner=Runner if named is None else custom_runner.load(named),
            on_forward=on_llm_forward,
            on_time=on_llm_time,
        ),
        diffusion=DiffusionEngine(language_models=models, device=device, on_forward=on_diffusion_forward),
    )
    host().unload = studio.unload
    return studio


def services_for(
    studio: Studio, config: Config, files: Files, publish: Callable[[Event], None], saved: Saved = as_it_is
) -> Services:
    """What `run_job` wants, shared by every job of this process. Nodes, and so torch, are loaded by then."""
    from app.compat.models import ModelFaces

    return Services(
        specs=studio.registry,
        library=files,
        files=files,
        llm=studio.llm,
        diffusion=studio.diffusion,
        publish=publish,
        threads=ThreadPoolExecutor(MAX_THREADS, "node", initializer=gradients_off),
        cache=ResultCache(config.cache_mb * 1024 * 1024, config.cache_entries),
        keeps=config.cache_keeps,
        faces=ModelFaces(),
        pack_turns=PackTurns(initializer=gradients_off),
        pack_loops=PackLoops(initializer=gradients_off),
        saved=saved,
    )


def gradients_off() -> None:
    """For nodes of the calling thread: torch remembers this by thread, and nobody trains here."""
    import torch

    torch.set_grad_enabled(False)


def load_nodes(config: Config, files: Files) -> Registry:
    """The program's own nodes, then the packs of every custom_nodes folder."""
    registry = host().registry = Registry()
    registry.load_builtin()
    load_packs(registry, _pack_folders(files), _allowed(config))
    return registry


def _pack_folders(files: Files) -> tuple[Path, ...]:
    packs = files.folders.folder("custom_nodes")
    return packs.roots if packs else ()


def _allowed(config: Config) -> tuple[str, ...] | None:
    return None if config.custom_nodes else config.whitelisted_packs


def choose_device(config: Config) -> str:
    import torch

    return config.device or ("cuda" if torch.cuda.is_available() else "cpu")


class Startup:
    """`load` runs once, in a thread of its own; `ready` waits for it and says what went wrong."""

    def __init__(self, load: Callable[[], Studio]) -> None:
        self._load = load
        self._outcome: asyncio.Future[Studio] | None = None

    def begin(self) -> None:
        """In the event loop that will wait for it."""
        loop = asyncio.get_running_loop()
        self._outcome = loop.create_future()
        threading.Thread(target=self._run, args=(loop, self._outcome), name="startup", daemon=True).start()

    async def ready(self) -> Studio:
        """Raises `Unavailable` when loading failed; the server keeps answering what needs no nodes."""
        assert self._outcome is not None, "not begun"
        return await asyncio.shield(self._outcome)

    @property
    def studio(self) -> Studio | None:
        """None until it is ready, and for ever when loading failed."""
        outcome = self._outcome
        if outcome is None or not outcome.done() or outcome.cancelled() or outcome.exception() is not None:
            return None
        return outcome.result()

    async def close(self) -> None:
        if self.studio is not None:
            await asyncio.to_thread(self.studio.close)

    def _run(self, loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[Studio]) -> None:
        began = time.monotonic()
        try:
            studio = self._load()
        # any import of the program or of its libraries may fail here, and clients must be told
        except Exception as error:
            log.exception("loading nodes and runtimes failed")
            text = f"The server could not load its nodes and runtimes: {type(error).__name__}: {error}"
            _settle(loop, outcome, lambda: _fail(outcome, Unavailable(text)))
            return
        log.info("%d nodes ready after %.1f s", len(studio.registry), time.monotonic() - began)
        _settle(loop, outcome, lambda: outcome.set_result(studio))


def _settle(
    loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[Studio], settle: Callable[[], None]
) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: None if outcome.done() else settle())


def _fail(outcome: asyncio.Future[Studio], error: Unavailable) -> None:
    outcome.set_exception(error)
    # looked at here, because nobody may ever ask and the log has it already
    outcome.exception()
