"""Runs what the queue lets run, as many jobs side by side as it allows, and writes down what became of each.

It lives in the event loop. Which job comes next is the queue's decision; how one runs is app.graph's.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from app.backlog import Backlog, StoredPrompt
from app.bus import Bus
from app.config import Config
from app.errors import Unavailable
from app.events import ExecutionEnd, QueueChanged
from app.files import Files
from app.graph.report import Outcome
from app.graph.run import run_job
from app.graph.services import Saved, Services
from app.history import History
from app.history_item import crashed, history_row, not_run
from app.metrics import Metrics
from app.queue import Job, JobQueue
from app.revive import Lost, revived
from app.startup import Startup, Studio, gradients_off, services_for

log = logging.getLogger(__name__)


class Jobs:
    """A job enters with `submit`; from then on the queue, the history and the bus tell about it.

    What an earlier process left enters by itself once the nodes are loaded, before anything new.
    """

    def __init__(
        self,
        config: Config,
        queue: JobQueue,
        files: Files,
        bus: Bus,
        history: History,
        backlog: Backlog,
        startup: Startup,
        metrics: Metrics,
        saved: Saved,
    ) -> None:
        self._config = config
        self._queue = queue
        self._files = files
        self._bus = bus
        self._history = history
        self._backlog = backlog
        self._startup = startup
        self._metrics = metrics
        self._saved = saved
        self._services: Services | None = None
        self._left: dict[str, StoredPrompt] = {}
        self._arriving: dict[str, Job] = {}
        self._ends: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._tasks: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self) -> None:
        for stored in await self._backlog.open(forget=self._config.empty_queue):
            self._left[stored.id] = stored
            self._queue.counted = max(self._queue.counted, stored.counted)
        self._resuming = asyncio.create_task(self._resume(), name="resume the queue")

    def next_number(self, front: bool) -> float:
        return self._queue.next_number(front)

    def remaining(self) -> int:
        return self._queue.remaining + len(self._left)

    def running(self) -> list[Job]:
        return self._queue.running

    def pending(self) -> Sequence[Job | StoredPrompt]:
        return [*self._queue.waiting, *self._left.values()]

    def state(self, job_id: str) -> str | None:
        """ "pending" or "running"; None for a job that is not here."""
        is_coming = job_id in self._left or job_id in self._arriving
        return "pending" if is_coming else self._queue.state(job_id)

    async def find(self, job_id: str) -> Job | None:
        """Waiting, running, or about to wait."""
        await self._resumed()
        return self._arriving.get(job_id) or self._queue.find(job_id)

    async def submit(self, job: Job) -> None:
        """Returns once the job is on disk and waits. Its id must be free."""
        assert self.state(job.id) is None, f"job {job.id} is {self.state(job.id)} already"
        self._arriving[job.id] = job
        try:
            await self._resumed()
            await self._backlog.put(job, self._queue.counted)
        except sqlite3.Error as error:
            raise Unavailable(f"The queue cannot be written: {error}") from None
        finally:
            del self._arriving[job.id]
        self._queue.put(job)
        self._tell()
        self._start()

    async def ended(self, job_id: str) -> None:
        """Returns at once for a job that is not here."""
        if self.state(job_id) is not None:
            await self._ends[job_id].wait()

    async def delete(self, job_ids: Iterable[str]) -> bool:
        """Takes waiting jobs away; they leave no history. Whether there was one."""
        ids = list(job_ids)
        deleted = [job.id for job in self._queue.delete(ids)]
        deleted += [id for id in ids if self._left.pop(id, None) is not None]
        if deleted:
            self._tell()
            for id in deleted:
                self._release(id)
            await self._backlog.remove(deleted)
        return bool(deleted)

    async def clear(self) -> None:
        if not await self.delete([job.id for job in self.pending()]):
            self._tell()

    def interrupt(self, job_id: str | None = None) -> bool:
        """Stops a running job, or all that run; whether there was one."""
        return bool(self._queue.stop(job_id))

    async def cancel(self, job_id: str) -> bool:
        """Whether it waits or runs."""
        return await self.delete([job_id]) or self.interrupt(job_id)

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
        """Stops what runs and waits for it. What did not end by itself begins again with the next process."""
        self._closing = True
        if self._resuming is not None:
            self._resuming.cancel()
        await self._backlog.given_up(job.id for job in self._queue.running)
        self._queue.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)
        await self._backlog.close()

    async def _resumed(self) -> None:
        """What an earlier process left is in the queue."""
        if self._resuming is not None:
            await asyncio.shield(self._resuming)

    async def _resume(self) -> None:
        try:
            studio = await self._startup.ready()
        except Unavailable:
            # what waits stays on disk for a start that succeeds
            return
        self._services = await asyncio.to_thread(
            services_for, studio, self._config, self._files, self._bus.publish, self._saved
        )
        self._services.pack_turns.watch(self._packs_changed)
        gradients_off()
        for stored in tuple(self._left.values()):
            job = await self._revived(stored, studio)
            if self._left.pop(stored.id, None) is None:
                continue
            if isinstance(job, Lost):
                await self._give_up(stored, job.reason)
            else:
                self._queue.put(job)
                self._start()

    async def _revived(self, stored: StoredPrompt, studio: Studio) -> Job | Lost:
        try:
            return await asyncio.to_thread(
                revived, stored, studio.registry, self._files, self._config.metadata
            )
        # the checks are a pack's own code, and the prompts behind this one must come in
        except Exception as error:
            log.exception("job %s cannot be taken up again", stored.id)
            return Lost(f"The server was restarted, and this prompt could not be checked again: {error}")

    async def _give_up(self, stored: StoredPrompt, reason: str) -> None:
        log.error("job %s is given up: %s", stored.id, reason)
        event, outcome = not_run(stored, reason)
        self._bus.publish(event)
        await self._remember(stored, outcome)
        self._say_end(stored)

    def _packs_changed(self) -> None:
        assert self._services is not None, "only its packs change"
        turns = self._services.pack_turns
        self._queue.hold_up(turns.late, turns.waiting)
        self._start()

    def _start(self) -> None:
        while not self._closing and (job := self._queue.start_next()) is not None:
            self._tell()
            task = asyncio.create_task(self._run(job), name=f"job {job.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        began = time.monotonic()
        try:
            if not await self._noted(job):
                return
            outcome = await self._outcome(job)
            if self._closing and outcome.status == "interrupted":
                return
            await self._remember(job, outcome)
            self._metrics.prompt_ended(outcome.status, time.monotonic() - began)
            log.info("Prompt executed in %.2f seconds (%s)", time.monotonic() - began, outcome.status)
        finally:
            self._queue.finish(job.id)
            self._say_end(job)
            self._start()

    async def _noted(self, job: Job) -> bool:
        """Its start is on disk; False when it has to wait for the next process."""
        if self._closing:
            return False
        try:
            await self._backlog.started([job.id])
        except sqlite3.Error as error:
            log.error("the start of job %s is not on disk: %s", job.id, error)
        return True

    async def _remember(self, job: Job | StoredPrompt, outcome: Outcome) -> None:
        try:
            await self._history.add(history_row(job, outcome))
        except sqlite3.Error as error:
            log.error("job %s is not in history: %s", job.id, error)

    async def _outcome(self, job: Job) -> Outcome:
        try:
            assert self._services is not None, "jobs come in after the nodes are there"
            return await run_job(job, self._services)
        # a fault outside a job's nodes must neither stop the queue nor leave a client waiting
        except Exception as error:
            log.exception("job %s ended outside its nodes", job.id)
            event, outcome = crashed(job, error)
            self._bus.publish(event)
            return outcome

    def _say_end(self, job: Job | StoredPrompt) -> None:
        self._tell()
        self._bus.publish(ExecutionEnd(job.id, job.client_id))
        self._release(job.id)

    def _release(self, job_id: str) -> None:
        if (end := self._ends.pop(job_id, None)) is not None:
            end.set()

    def _tell(self) -> None:
        self._bus.publish(QueueChanged(self.remaining()))
