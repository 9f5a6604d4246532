"""The diffusion runtime: one thread that owns a device and merges the model work of all live requests.

A request is a generator of rows. The loop takes messages, asks the scheduler for a group of rows, has the
runner compute it and hands the answers back; a generator that ends has made its request's result.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runtime.diffusion import lanes, model
from runtime.diffusion.api import (
    Checkpoint,
    ControlRef,
    DecodeRequest,
    DiffusionStats,
    EncodeImageRequest,
    EncodeTextRequest,
    ModelRef,
    Preview,
    Progress,
    Request,
    SampleRequest,
    TextEncoderRef,
    VaeRef,
)
from runtime.diffusion.conditioning_cache import ConditioningCache
from runtime.diffusion.families.base import LatentFormat, Prediction
from runtime.diffusion.preview import PreviewClock, latent_to_rgb
from runtime.diffusion.runner import DeviceRow, Runner, is_out_of_memory
from runtime.diffusion.samplers import NAMES
from runtime.diffusion.sampling import LoadedModel, OnStep, sample
from runtime.diffusion.scheduler import Group, Row, Scheduler
from runtime.diffusion.sigmas import spacings, walk
from runtime.platform.errors import OutOfMemory, RuntimeFault, Unsupported
from runtime.platform.handle import CancelledEvent, Done, Failed, Handle, Started

HOLD_S = 0.002

Course = Generator[Sequence[DeviceRow], list[Any], Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Submit:
    request: Request
    handle: Handle[Any]


@dataclass(frozen=True, slots=True)
class _Cancel:
    request_id: str


@dataclass(frozen=True, slots=True)
class _Unload:
    pass


@dataclass(frozen=True, slots=True)
class _Close:
    pass


_Message = _Submit | _Cancel | _Unload | _Close


@dataclass(slots=True, eq=False)
class _Live:
    """A request that has begun: its generator, the rows it waits for, and the answers so far."""

    request: Request
    handle: Handle[Any]
    course: Course
    rows: Sequence[DeviceRow] = ()
    answers: dict[int, Any] = field(default_factory=dict)
    has_started: bool = False


class Engine:
    """Implements `DiffusionRuntime`.

    `on_forward` hears the number of rows of each denoising forward, on the engine's thread. `loader` is for
    those who bring weights of their own; by default one is made for `device` and `dtype`, which is float32 on
    a CPU and bfloat16 elsewhere.
    """

    def __init__(
        self,
        language_models: Callable[[], Mapping[str, Path]],
        *,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
        on_forward: Callable[[int], None] | None = None,
        max_rows: int = 64,
        loader: model.Loader | None = None,
    ) -> None:
        self._device = device
        self._max_rows = max_rows
        dtype = dtype or (torch.float32 if device == "cpu" else torch.bfloat16)
        self._loader = loader or model.Loader(language_models, device, dtype)
        self._runner = Runner(device, on_forward)
        self._scheduler = Scheduler()
        self._conditionings = ConditioningCache()
        self._live: dict[str, _Live] = {}
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="diffusion", daemon=True)
        self._thread.start()

    # --- what any thread may call

    def samplers(self) -> tuple[str, ...]:
        return NAMES

    def schedulers(self) -> tuple[str, ...]:
        return tuple(spacings)

    def inspect_checkpoint(self, path: Path) -> Checkpoint:
        return model.inspect_checkpoint(path)

    def inspect_model(self, path: Path) -> ModelRef:
        return model.inspect_model(path)

    def inspect_clip(self, paths: tuple[Path, ...], kind: str) -> TextEncoderRef:
        return model.inspect_clip(paths, kind)

    def inspect_vae(self, path: Path) -> VaeRef:
        return model.inspect_vae(path)

    def inspect_control(self, path: Path) -> ControlRef:
        return model.inspect_control(path)

    def sigmas(self, model: ModelRef, scheduler: str, steps: int, denoise: float) -> torch.Tensor:
        schedule = self._loader.family(model).schedule(model, model.sampling)
        return torch.tensor(walk(schedule, scheduler, steps, denoise))

    def submit(self, request: Request) -> Handle[Any]:
        handle: Handle[Any] = Handle(request.id, self.cancel)
        with self._closing:
            if not self._is_closed:
                self._inbox.put(_Submit(request, handle))
                return handle
        handle.deliver(Failed(request.id, RuntimeFault("the diffusion runtime is closed")))
        return handle

    def cancel(self, request_id: str) -> None:
        self._inbox.put(_Cancel(request_id))

    def unload(self) -> None:
        self._inbox.put(_Unload())

    def stats(self) -> DiffusionStats:
        return DiffusionStats(
            forwards=self._runner.forwards,
            rows=self._runner.rows,
            running=len(self._live),
            conditioning_hits=self._conditionings.hits,
            conditioning_misses=self._conditionings.misses,
        )

    def close(self) -> None:
        """Cancel what is live and wait for the thread; a forward under way is finished first."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._inbox.put(_Close())
        self._thread.join()

    # --- the engine's thread

    def _serve(self) -> None:
        with torch.no_grad():
            while self._turn():
                pass
        for request_id in list(self._live):
            self._cancel_live(request_id)

    def _turn(self) -> bool:
        try:
            if not self._take_messages():
                return False
            group = self._scheduler.schedule(time.monotonic())
            if group is not None:
                self._compute(group)
        except Exception as error:
            self._start_over(error)
        return True

    def _take_messages(self) -> bool:
        """All that have come; waits for one while there is nothing to compute. False: time to end."""
        ready_at = self._scheduler.ready_at()
        wait_s = None if ready_at is None else max(ready_at - time.monotonic(), 0.0)
        try:
            message = self._inbox.get(timeout=wait_s) if wait_s != 0 else self._inbox.get_nowait()
            while not isinstance(message, _Close):
                self._take(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            return True
        return False

    def _take(self, message: _Submit | _Cancel | _Unload) -> None:
        if isinstance(message, _Submit):
            self._begin(message.request, message.handle)
        elif isinstance(message, _Cancel):
            self._cancel_live(message.request_id)
        else:
            self._loader.unload()
            self._conditionings.clear()

    def _begin(self, request: Request, handle: Handle[Any]) -> None:
        if request.id in self._live:
            error = Unsupported(f"a request with the id {request.id} is already running")
            handle.deliver(Failed(request.id, error))
            return
        live = _Live(request, handle, self._course(request, handle))
        self._live[request.id] = live
        self._advance(live)

    def _course(self, request: Request, handle: Handle[Any]) -> Course:
        """Its first step loads what the request needs, which may take seconds."""
        loader = self._loader
        match request:
            case SampleRequest():
                loaded = self._loaded(request.model)
                on_step = _reporter(request, handle, loaded.latent_format)
                return (yield from sample(request, loaded, self._device, on_step))
            case EncodeTextRequest():
                load = partial(loader.text_encoder, request.clip)
                return (yield from lanes.encode_text(request, load, self._conditionings))
            case EncodeImageRequest():
                return (yield from lanes.encode_image(request, loader.autoencoder(request.vae)))
            case DecodeRequest():
                return (yield from lanes.decode(request, loader.autoencoder(request.vae)))

    def _loaded(self, ref: ModelRef) -> LoadedModel:
        family = self._loader.family(ref)
        prediction: Prediction = family.prediction
        wanted = ref.sampling.prediction if ref.sampling else None
        if wanted is not None and wanted != prediction:
            if prediction == "flow" or wanted not in ("eps", "v"):
                raise Unsupported(
                    f"{family.name} predicts {prediction}; eps and v models may be told eps or v"
                )
            prediction = "eps" if wanted == "eps" else "v"
        return LoadedModel(
            network=self._loader.network(ref),
            prediction=prediction,
            schedule=family.schedule(ref, ref.sampling),
            latent_format=self._loader.latent_format(ref),
        )

    def _advance(self, live: _Live) -> None:
        """Give a generator its answers and queue the rows that it wants next."""
        answers = [live.answers[place] for place in range(len(live.rows))]
        live.answers = {}
        try:
            live.rows = live.course.send(answers) if answers else next(live.course)
            while not live.rows:
                live.rows = live.course.send([])
            wanted = self._scheduled(live)
        except StopIteration as end:
            self._end(live)
            live.handle.deliver(Done(live.request.id, end.value))
        except Exception as error:
            self._fail(live, error)
        else:
            self._scheduler.add(wanted)

    def _scheduled(self, live: _Live) -> list[Row]:
        is_denoising = isinstance(live.request, SampleRequest)
        hold_until = 0.0 if is_denoising else time.monotonic() + HOLD_S
        return [
            Row(live.request.id, place, row.key, lanes.rows_together(row, self._max_rows), hold_until)
            for place, row in enumerate(live.rows)
        ]

    def _compute(self, group: Group) -> None:
        lives = [self._live[row.request_id] for row in group.rows]
        for live in lives:
            if not live.has_started:
                live.has_started = True
                live.handle.deliver(Started(live.request.id))
        rows = [live.rows[row.index] for live, row in zip(lives, group.rows, strict=True)]
        try:
            answers = self._runner.run(rows)
        except Exception as error:
            fault = error.with_traceback(None) if is_out_of_memory(error) else error
        else:
            self._scheduler.done(group)
            self._hand_back(group, answers)
            return
        if is_out_of_memory(fault):
            self._answer_out_of_memory(group)
        else:
            self._answer_fault(group, fault)

    def _hand_back(self, group: Group, answers: Sequence[Any]) -> None:
        for row, answer in zip(group.rows, answers, strict=True):
            self._live[row.request_id].answers[row.index] = answer
        for request_id in dict.fromkeys(row.request_id for row in group.rows):
            live = self._live[request_id]
            if len(live.answers) == len(live.rows):
                self._advance(live)

    def _answer_out_of_memory(self, group: Group) -> None:
        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        if self._scheduler.out_of_memory(group):
            log.warning("out of memory with %d rows; trying again with fewer", len(group.rows))
            return
        live = self._live[group.rows[0].request_id]
        row = live.rows[group.rows[0].index]
        self._fail(live, OutOfMemory(f"not enough memory on {self._device} for {lanes.described(row)}"))

    def _answer_fault(self, group: Group, error: Exception) -> None:
        """The request at fault fails. Where several share the group, each tries alone to show which."""
        self._scheduler.done(group)
        request_ids = dict.fromkeys(row.request_id for row in group.rows)
        if len(request_ids) == 1:
            self._fail(self._live[group.rows[0].request_id], error)
            return
        for request_id in request_ids:
            own = [row for row in group.rows if row.request_id == request_id]
            self._scheduler.add([replace(row, key=(row.key, request_id)) for row in own])

    def _fail(self, live: _Live, error: Exception) -> None:
        if is_out_of_memory(error):
            error = OutOfMemory(
                f"not enough memory on {self._device} to load or prepare what this request needs"
            )
        elif not isinstance(error, RuntimeFault):
            log.error("request %s failed", live.request.id, exc_info=error)
        self._end(live)
        live.handle.deliver(Failed(live.request.id, error))

    def _start_over(self, error: Exception) -> None:
        """A mistake of this file's own: the live requests fail, those that come later are served."""
        log.error("the diffusion engine lost its place", exc_info=error)
        self._scheduler = Scheduler()
        for live in list(self._live.values()):
            self._fail(live, error)

    def _cancel_live(self, request_id: str) -> None:
        live = self._live.get(request_id)
        if live is not None:
            self._end(live)
            live.handle.deliver(CancelledEvent(request_id))

    def _end(self, live: _Live) -> None:
        del self._live[live.request.id]
        self._scheduler.drop(live.request.id)
        live.course.close()


def _reporter(request: SampleRequest, handle: Handle[Any], latent_format: LatentFormat) -> OnStep:
    """Turns steps into progress, each once, and now and then into a preview."""
    clock, reported = PreviewClock(), 0

    def report(done: int, steps: int, denoised: torch.Tensor) -> None:
        nonlocal reported
        if done > reported:
            reported = done
            handle.deliver(Progress(request.id, done, steps))
        if request.previews and clock.is_due(time.monotonic()):
            rgb = latent_to_rgb(denoised, latent_format)
            if rgb is not None:
                handle.deliver(Preview(request.id, rgb, done, steps))

    return report
