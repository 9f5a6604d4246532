"""Runs what the queue lets run, as many jobs side by side as it allows, and writes down what became of each.

It lives in the event loop. Which job comes next is the queue's decision; how one runs is app.graph's.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterable

from app.bus import Bus
from app.config import Config
from app.events import ExecutionEnd, QueueChanged
from app.files import Files
from app.graph.report import Outcome
from app.graph.run import run_job
from app.graph.services import Services
from app.history import History
from app.history_item import crashed, history_row
from app.metrics import Metrics
from app.queue import Job, JobQueue
from app.startup import Startup, Studio, services_for

log = logging.getLogger(__name__)


class Jobs:
    """A job enters with `submit`; from then on the queue, the history and the bus tell about it."""

    def __init__(
        self,
        config: Config,
        queue: JobQueue,
        files: Files,
        bus: Bus,
        history: History,
        startup: Startup,
        metrics: Metrics,
    ) -> None:
        self._config = config
        self._queue = queue
        self._files = files
        self._bus = bus
        self._history = history
        self._startup = startup
        self._metrics = metrics
        self._services: Services | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def next_number(self, front: bool) -> float:
        return self._queue.next_number(front)

    def remaining(self) -> int:
        return self._queue.remaining

    def running(self) -> list[Job]:
        return self._queue.running

    def pending(self) -> list[Job]:
        return self._queue.waiting

    def state(self, job_id: str) -> str | None:
        return self._queue.state(job_id)

    def submit(self, job: Job) -> None:
        self._queue.put(job)
        self._tell()
        self._start()

    def delete(self, job_ids: Iterable[str]) -> list[Job]:
        """Takes waiting jobs away; they leave no history."""
        deleted = self._queue.delete(job_ids)
        if deleted:
            self._tell()
        return deleted

    def clear(self) -> None:
        self._queue.clear()
        self._tell()

    def interrupt(self, job_id: str | None = None) -> bool:
        """Stops a running job, or all that run; whether there was one."""
        return bool(self._queue.stop(job_id))

    def cancel(self, job_id: str) -> bool:
        """Whether it waits or runs."""
        return bool(self.delete([job_id])) or self.interrupt(job_id)

    async def free(self, unload_models: bool, drop_results: bool) -> None:
        """What running jobs use stays."""
        studio = self._startup.studio
        if studio is None:
            return
        if drop_results and self._services is not None:
            self._services.cache.clear()
        if unload_models or drop_results:
            await asyncio.to_thread(studio.llm.unload)
            await asyncio.to_thread(studio.diffusion.unload)

    async def close(self) -> None:
        """Stops what runs and waits for it, so that its history is written."""
        self._closing = True
        self._queue.clear()
        self._queue.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)

    def _start(self) -> None:
        while not self._closing and (job := self._queue.start_next()) is not None:
            self._tell()
            task = asyncio.create_task(self._run(job), name=f"job {job.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        began = time.monotonic()
        try:
            outcome = await self._outcome(job)
            await self._remember(job, outcome)
            self._metrics.prompt_ended(outcome.status, time.monotonic() - began)
            log.info("Prompt executed in %.2f seconds (%s)", time.monotonic() - began, outcome.status)
        finally:
            self._queue.finish(job.id)
            self._tell()
            self._bus.publish(ExecutionEnd(job.id, job.client_id))
            self._start()

    async def _remember(self, job: Job, outcome: Outcome) -> None:
        try:
            await self._history.add(history_row(job, outcome))
        except sqlite3.Error as error:
            log.error("job %s is not in history: %s", job.id, error)

    async def _outcome(self, job: Job) -> Outcome:
        try:
            return await run_job(job, self._served_by(await self._startup.ready()))
        # a fault outside a job's nodes must neither stop the queue nor leave a client waiting
        except Exception as error:
            log.exception("job %s ended outside its nodes", job.id)
            event, outcome = crashed(job, error)
            self._bus.publish(event)
            return outcome

    def _tell(self) -> None:
        self._bus.publish(QueueChanged(self._queue.remaining))

    def _served_by(self, studio: Studio) -> Services:
        if self._services is None:
            self._services = services_for(studio, self._config, self._files, self._bus.publish)
        return self._services
