"""Serves the features of media by one model's encoder, without its language part.

One thread owns the encoder; what comes in while it works is encoded together afterwards.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

import torch

from runtime.llm import encoder_model, encoder_wire
from runtime.llm.encoder_wire import Question
from runtime.llm.features import FeatureStore
from runtime.llm.media import Features, Item
from runtime.platform.building import building
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

log = logging.getLogger(__name__)

_ITEMS_TOGETHER = 64


@dataclass(frozen=True, slots=True)
class _Job:
    items: Sequence[Item]
    future: Future[list[Features]]


class Encoder:
    """Of the model `name`, one of the `known` ones. `max_feature_bytes` of features are kept by content hash.

    Making one raises `MissingFile`, `Unsupported` or `OutOfMemory`. Any thread may call.
    """

    def __init__(
        self,
        name: str,
        known: Mapping[str, Path],
        *,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
        max_feature_bytes: int = 256 << 20,
    ) -> None:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise MissingFile(f"there is no language model called {name}; there are: {there}")
        self.name = name
        self.fingerprint = encoder_wire.fingerprint(known[name])
        with building:
            self.network, processor = encoder_model.load(known[name], torch.device(device), dtype, known)
        self._store = FeatureStore(processor, self.network, max_feature_bytes)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="encoder", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> dict[str, int]:
        """How many items were encoded, and how many were known by their hash."""
        return {"encoded": self._store.num_encoded, "reused": self._store.num_reused}

    def submit(self, asked: Question) -> Future[list[Features]]:
        """One of each item. Raises `Unsupported` when another model is meant."""
        if asked.fingerprint != self.fingerprint:
            raise Unsupported(f"it serves {self.name}, whose files are others")
        job = _Job(asked.items, Future())
        self._jobs.put(job)
        return job.future

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            jobs, is_last = self._take()
            if jobs and not self._do(jobs):
                # One that cannot be encoded costs nobody else his features.
                for job in jobs:
                    self._do([job])
            if is_last:
                return

    def _take(self) -> tuple[list[_Job], bool]:
        """Wait for one, and take what else is there."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
            if sum(len(each.items) for each in jobs) >= _ITEMS_TOGETHER:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _do(self, jobs: Sequence[_Job]) -> bool:
        """False when it failed for several, none of whom was told then."""
        try:
            made = self._store.encoded([item for job in jobs for item in job.items])
        except Exception as error:
            if len(jobs) > 1:
                return False
            log.exception("encoding for a request failed")
            for job in jobs:
                job.future.set_exception(RuntimeFault(f"the items cannot be encoded: {error}"))
            return True
        for job in jobs:
            job.future.set_result([made[item.hash] for item in job.items])
        return True
