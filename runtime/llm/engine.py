"""The language runtime: one thread that steps every loaded model; everybody else sends it messages.

Loading and tokenising happen beside that thread, so that they delay nobody's tokens.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import lcm
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from runtime.llm import adapter_file, dllm, encoder_decoder, gguf_header, model, text
from runtime.llm.api import LanguageStats, Request, media_of
from runtime.llm.budget import Budget
from runtime.llm.compat_lane import CompatLane
from runtime.llm.dllm.writer import BlockWriter
from runtime.llm.encoder_client import EncoderClient
from runtime.llm.encoder_wire import fingerprint
from runtime.llm.lane import Deliver, Lane, Writer
from runtime.llm.runner import Runner
from runtime.llm.stopwatch import OnTime, Stopwatch
from runtime.llm.writing import TokenWriter
from runtime.platform.building import building
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported
from runtime.platform.handle import CancelledEvent, Failed, Handle

log = logging.getLogger(__name__)

_NUM_PREPARING_THREADS = 2
_NUM_ASKING_THREADS = 8

AnyLane = Lane | CompatLane


class Engine:
    """Implements `runtime.llm.api.LanguageRuntime`.

    `models` is asked anew for each request, so files may come and go. So is `adapters`, the LoRA folders by
    name; each model keeps `max_adapter_bytes` of them for later requests. With an `encoder_url` media are
    encoded by the encoder process there, and no model has an encoder of its own. `num_pages` None means what
    memory allows, `dtype` None the fastest that keeps answers (see `model.load`), and `on_forward` is told
    the number of rows of each forward, `on_time` how long requests wait. Without `prefix_cache` every prompt
    is computed whole. `mem_fraction_static` is the share of all memory that weights and pages of loaded
    models may take together; None leaves pages a quarter of what is free. The `speculative_algorithm` "NGRAM"
    guesses up to `num_draft_tokens` tokens of an answer from what was said before. Models that write in
    blocks do it by `dllm_algorithm`, one of `runtime.llm.dllm.algorithms`, with these settings of it.
    """

    def __init__(
        self,
        models: Callable[[], Mapping[str, Path]],
        *,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
        page_size: int = 16,
        num_pages: int | None = None,
        prefix_cache: bool = True,
        mem_fraction_static: float | None = None,
        max_batch_tokens: int | None = None,
        max_rows: int = 64,
        max_feature_bytes: int = 256 << 20,
        adapters: Callable[[], Mapping[str, Path]] = dict,
        max_adapter_bytes: int = 512 << 20,
        encoder_url: str | None = None,
        speculative_algorithm: str | None = None,
        num_draft_tokens: int = 6,
        dllm_algorithm: str = dllm.DEFAULT,
        dllm_settings: Mapping[str, float] | None = None,
        threads: int | None = None,
        runner: type[Runner] = Runner,
        on_forward: Callable[[int], None] | None = None,
        on_time: OnTime | None = None,
    ) -> None:
        self._models = models
        self._device = torch.device(device)
        self._dtype = dtype
        self._mem_fraction_static = mem_fraction_static
        self._page_size = page_size
        self._num_pages = num_pages
        self._prefix_cache = prefix_cache
        self._max_batch_tokens = max_batch_tokens or (256 if self._device.type == "cpu" else 8192)
        self._max_rows = max_rows
        self._max_feature_bytes = max_feature_bytes
        self._adapters = adapters
        self._max_adapter_bytes = max_adapter_bytes
        self._encoder_url = encoder_url
        if speculative_algorithm not in (None, "NGRAM"):
            raise Unsupported(
                f"unknown speculative algorithm {speculative_algorithm!r}; supported is NGRAM, or none"
            )
        self._num_guesses = num_draft_tokens if speculative_algorithm else 0
        self._dllm_algorithm = dllm.make(dllm_algorithm, dllm_settings or {})
        self._threads = threads
        self._runner = runner
        self._on_forward = on_forward
        self._on_time = on_time
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lanes: dict[str, AnyLane] = {}
        self._loads: dict[str, Future[AnyLane]] = {}
        self._loads_lock = threading.Lock()
        self._preparing: dict[str, tuple[Request, Deliver]] = {}
        self._is_closed = False
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="llm-load")
        self._preparers = ThreadPoolExecutor(_NUM_PREPARING_THREADS, thread_name_prefix="llm-prepare")
        # Apart from the others, so that an encoder that is slow or away holds back no request of text.
        self._askers = ThreadPoolExecutor(_NUM_ASKING_THREADS, thread_name_prefix="llm-ask")
        self._thread = threading.Thread(target=self._run, name="llm-engine", daemon=True)
        self._thread.start()

    # -- called from any thread ------------------------------------------------------------------------------

    def models(self) -> tuple[str, ...]:
        known = self._models()
        trained = ((adapter_file.base_name(folder), name) for name, folder in self._adapters().items())
        return (*known, *(f"{base}:{name}" for base, name in trained if base in known))

    def load(self, model: str) -> None:
        self._load(model).result()
        # The lane lies in the inbox by now; when the thread has answered this, it has taken the lane.
        self._ask(lambda: None)

    def submit(self, request: Request) -> Handle[Any]:
        handle: Handle[Any] = Handle(request.id, self.cancel)
        if self._is_closed:
            handle.deliver(Failed(request.id, RuntimeFault("the language runtime is closed")))
        else:
            deliver = handle.deliver if self._on_time is None else Stopwatch(handle.deliver, self._on_time)
            self._inbox.put(partial(self._accept, request, deliver))
        return handle

    def cancel(self, request_id: str) -> None:
        self._inbox.put(partial(self._cancel, request_id))

    def unload(self) -> None:
        self._ask(self._drop_idle_lanes)
        for lane in list(self._lanes.values()):
            if isinstance(lane, Lane):
                lane.adapters.clear()

    def stats(self) -> dict[str, LanguageStats]:
        return {name: lane.stats() for name, lane in self._lanes.copy().items()}

    def close(self) -> None:
        """Ends every request; returns when the engine's thread has ended."""
        if self._thread.is_alive():
            self._inbox.put(self._shut)
            self._thread.join()
        self._loader.shutdown(wait=False, cancel_futures=True)
        self._preparers.shutdown(wait=False, cancel_futures=True)
        self._askers.shutdown(wait=False, cancel_futures=True)

    def _ask(self, act: Callable[[], None]) -> None:
        """Have the engine's thread do it, and wait for that."""
        done = threading.Event()

        def answer() -> None:
            try:
                act()
            finally:
                done.set()

        self._inbox.put(answer)
        while not done.wait(0.1) and self._thread.is_alive():
            pass

    # -- the engine's thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        while not self._is_closed:
            self._take_messages()
            for name in list(self._lanes):
                self._step(name, self._lanes[name])
        self._take_leftovers()

    def _step(self, name: str, lane: AnyLane) -> None:
        try:
            lane.step()
        except Exception as error:
            log.exception("the books of %s are broken; it will be loaded anew", name)
            lane.fail_all(RuntimeFault(f"the language runtime failed: {error}"))
            self._drop(name)

    def _take_messages(self) -> None:
        """Wait for one only when there is nothing else to do."""
        is_idle = all(lane.is_idle for lane in self._lanes.values())
        while is_idle or not self._inbox.empty():
            is_idle = False
            message = self._inbox.get()
            try:
                message()
            except Exception:
                log.exception("a message to the language engine failed")

    def _accept(self, request: Request, deliver: Deliver) -> None:
        if request.id in self._preparing or any(lane.has(request.id) for lane in self._lanes.values()):
            deliver(Failed(request.id, RuntimeFault(f"a request {request.id} is already running")))
            return
        try:
            request = self._with_adapter(request)
        except RuntimeFault as fault:
            deliver(Failed(request.id, fault))
            return
        self._preparing[request.id] = (request, deliver)
        self._load(request.model).add_done_callback(partial(self._prepare_soon, request))

    def _with_adapter(self, request: Request) -> Request:
        """A model's name may end in a colon and the name of an adapter."""
        base, _, adapter = request.model.partition(":")
        if not adapter or request.model in self._models():
            return request
        if request.adapter not in (None, adapter):
            raise Unsupported(f"a request takes one adapter; named are {adapter} and {request.adapter}")
        return replace(request, model=base, adapter=adapter)

    def _start(self, request: Request, lane: AnyLane, prepared: Any) -> None:
        """`prepared` is what the lane made of the request."""
        entry = self._preparing.pop(request.id, None)
        if entry is None:
            return
        deliver = entry[1]
        if self._lanes.get(request.model) is not lane:
            # It was dropped meanwhile; the request waits for it to be loaded anew.
            self._accept(request, deliver)
            return
        try:
            lane.add(request, prepared, deliver)
        except RuntimeFault as fault:
            deliver(Failed(request.id, fault))
        except Exception as error:
            log.exception("request %s cannot be started", request.id)
            deliver(Failed(request.id, RuntimeFault(f"the request cannot be started: {error}")))

    def _fail(self, request_id: str, error: Exception) -> None:
        entry = self._preparing.pop(request_id, None)
        if entry is not None:
            entry[1](Failed(request_id, error))

    def _cancel(self, request_id: str) -> None:
        entry = self._preparing.pop(request_id, None)
        if entry is not None:
            entry[1](CancelledEvent(request_id))
            return
        for lane in self._lanes.values():
            lane.cancel(request_id)

    def _drop_idle_lanes(self) -> None:
        wanted = {request.model for request, _ in self._preparing.values()}
        for name in [name for name, lane in self._lanes.items() if lane.is_idle and name not in wanted]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        with self._loads_lock:
            del self._lanes[name], self._loads[name]

    def _shut(self) -> None:
        self._is_closed = True

    def _take_leftovers(self) -> None:
        """Nobody waits for ever: requests that run, prepare or still lie in the inbox end as cancelled."""
        for lane in self._lanes.values():
            lane.cancel_all()
        while not self._inbox.empty():
            self._inbox.get()()
        for request_id in list(self._preparing):
            self._cancel(request_id)

    # -- beside the engine's thread --------------------------------------------------------------------------

    def _load(self, name: str) -> Future[AnyLane]:
        """Everybody who wants a model waits for one load; a failed one is forgotten and tried anew."""
        with self._loads_lock:
            future = self._loads.get(name)
            if future is None:
                future = self._loads[name] = self._loader.submit(self._make_or_forget, name)
            return future

    def _make_or_forget(self, name: str) -> AnyLane:
        try:
            return self._make_lane(name)
        except BaseException:
            with self._loads_lock:
                del self._loads[name]
            raise

    def _prepare_soon(self, request: Request, load: Future[AnyLane]) -> None:
        if not self._is_closed:
            asks = self._encoder_url is not None and media_of(request)
            (self._askers if asks else self._preparers).submit(self._prepare, request, load)

    def _prepare(self, request: Request, load: Future[AnyLane]) -> None:
        try:
            lane = load.result()
            prepared = lane.prepare(request)
        except RuntimeFault as fault:
            self._inbox.put(partial(self._fail, request.id, fault))
        except Exception as error:
            log.exception("preparing request %s failed", request.id)
            wrapped = RuntimeFault(f"the request cannot be prepared: {error}")
            self._inbox.put(partial(self._fail, request.id, wrapped))
        else:
            self._inbox.put(partial(self._start, request, lane, prepared))

    def _make_lane(self, name: str) -> AnyLane:
        known = self._models()
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise MissingFile(f"there is no language model called {name}; there are: {there}")
        lane: AnyLane
        if encoder_decoder.is_one(known[name]):
            lane = self._make_compat_lane(known[name])
        else:
            lane = self._make_paged_lane(known[name], known)
        self._inbox.put(partial(self._lanes.__setitem__, name, lane))
        return lane

    def _make_compat_lane(self, path: Path) -> CompatLane:
        with building:
            codec = text.load(path)
            loaded = encoder_decoder.load(path, self._device, self._dtype)
        return CompatLane(loaded, codec, self._max_rows, self._on_forward)

    def _make_paged_lane(self, path: Path, known: Mapping[str, Path]) -> Lane:
        with building, gguf_header.read_once():
            codec = text.load(path, known)
            loaded = model.load(path, self._device, self._dtype, known, encodes=self._encoder_url is None)
        if self._encoder_url is not None and loaded.processor is not None:
            loaded = replace(loaded, encoder=self._encoder_client(self._encoder_url, path, loaded))
        # Pages hold whole blocks, since what a page holds depends on all of a block.
        page_size = self._page_size if loaded.blocks is None else lcm(self._page_size, loaded.blocks.length)
        budget = self._budget(loaded)
        max_rows, num_kept_states = budget.states()
        return Lane(
            loaded,
            codec,
            num_pages=self._num_pages or budget.pages(page_size),
            page_size=page_size,
            max_batch_tokens=self._max_batch_tokens,
            max_rows=max_rows,
            max_feature_bytes=self._max_feature_bytes,
            max_adapter_bytes=self._max_adapter_bytes,
            adapters=self._adapters,
            writer=self._writer(loaded),
            num_kept_states=num_kept_states,
            prefix_cache=self._prefix_cache,
            runner=self._runner,
            on_forward=self._on_forward,
        )

    def _encoder_client(self, url: str, path: Path, loaded: model.LanguageModel) -> EncoderClient:
        dtype = loaded.network.dtype
        return EncoderClient(url, path.name, fingerprint(path), self._device, dtype, self._max_feature_bytes)

    def _writer(self, loaded: model.LanguageModel) -> Writer:
        if loaded.blocks is None:
            return TokenWriter(self._num_guesses)
        return BlockWriter(loaded.blocks, self._dllm_algorithm)

    def _budget(self, loaded: model.LanguageModel) -> Budget:
        others = sum(each.weight_bytes + each.page_bytes for each in self.stats().values())
        return Budget(loaded, self._max_rows, self._mem_fraction_static, others)
