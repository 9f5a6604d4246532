"""One job from start to end: the loop over its Plan, with nodes as tasks side by side."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.events import Event, NodePreview
from app.graph.call import call_coroutine, call_plain, together
from app.graph.context import JobNodeContext
from app.graph.copies import Copies
from app.graph.dynamic import nested
from app.graph.flights import Told
from app.graph.hidden import DynamicPrompt, context_hidden, hidden_inputs
from app.graph.keys import Key, cache_keys, expansion_keys
from app.graph.parse import Node, parse_expansion
from app.graph.plan import Finished, NodeCall, Plan
from app.graph.report import Outcome, Report, name_of
from app.graph.services import NoFaces, Services
from app.graph.stamps import stamps_of
from app.graph.untouched import holds_any, seen
from app.graph.values import Entry, blocked, blocker_in
from app.queue import Job
from nodes.context import Invocation, JobInterrupted, current_context, current_invocation
from nodes.spec import Blocker, NodeResult

log = logging.getLogger(__name__)


class DependencyCycle(Exception):
    """What is left of the job waits for itself."""


async def run_job(job: Job, services: Services) -> Outcome:
    """Publishes what happens, up to the last word on success, error or interruption.

    Raises for nothing that a node does. Cancelling it gives the job up without a word.
    """
    return await _JobRun(job, services).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Needs:
    names: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Results:
    results: Sequence[NodeResult]
    added: Sequence[Node]


_Answer = _Needs | _Results | Entry


class _JobRun:
    plan: Plan

    def __init__(self, job: Job, services: Services) -> None:
        self.job = job
        self.services = services
        self.report = Report(job.id, job.client_id, services.publish)
        self.prompt = DynamicPrompt(job.valid.graph.prompt)
        self.keys: dict[str, Key] = {}
        self.tasks: dict[asyncio.Task[_Answer], NodeCall] = {}
        self.flying: set[str] = set()
        self.pinned: list[str] = []
        self.reported_blockers: set[int] = set()

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[None] = loop.create_future()
        wake = functools.partial(loop.call_soon_threadsafe, stopped.set_result, None)
        self.report.started()
        try:
            with self.job.stop.calling(wake):
                self.plan = await self._prepared()
                await self._drive(stopped)
        finally:
            await self._give_up_calls()
            self._let_others_fly()
            self.services.cache.unpin(self.pinned)
            if self.services.keeps == "last":
                self.services.cache.keep_only(self.pinned)
        return self.report.outcome()

    async def _prepared(self) -> Plan:
        """Looks up what is cached already, and shows the outputs among it."""
        graph, outputs = self.job.valid.graph, self.job.valid.outputs
        self._add_keys(cache_keys(graph.nodes, await self._stamps(graph.nodes.values())))
        found = {id: self.services.cache.get(key) for id, key in self.keys.items() if key}
        cached = {id: entry for id, entry in found.items() if entry is not None}
        self.report.cached([id for id in graph.nodes if id in cached])
        for id in outputs:
            if id in cached:
                self.report.node_finished(graph.nodes[id], cached[id], cached=True)
        return Plan(graph, outputs, cached)

    async def _drive(self, stopped: asyncio.Future[None]) -> None:
        while not self.plan.done:
            if self.job.stop.is_set:
                return await self._interrupted()
            for call in self.plan.ready():
                self.tasks[asyncio.create_task(self._answer(call))] = call
            if not self.tasks:
                return self._stuck()
            awaited: set[asyncio.Future[Any]] = {*self.tasks, stopped}
            ended, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in self.tasks if task in ended]:
                call = self.tasks.pop(task)
                if (error := self._settled(call, task)) is not None:
                    return await self._failed(call, error)
        self.report.succeeded()

    def _settled(self, call: NodeCall, task: asyncio.Task[_Answer]) -> BaseException | None:
        """Tells the plan; an expansion that makes no sense is the fault of its node."""
        if task.cancelled():
            return RuntimeError("the node's code cancelled itself")
        error = task.exception()
        if error is not None:
            return error
        answer, id = task.result(), call.node.id
        try:
            match answer:
                case _Needs(names):
                    self.plan.need(id, names)
                case _Results(results, added):
                    self._take(self.plan.finish(id, results, added))
                case Entry():
                    self._take(self.plan.reuse(id, answer), reused=True)
        except Exception as fault:
            return fault
        return None

    def _take(self, ended: Sequence[Finished], reused: bool = False) -> None:
        for one in ended:
            key = self.keys.get(one.node.id)
            if key in self.flying:
                assert key is not None
                self.services.cache.put(key, one.entry)
                self.services.flights.land(key, one.entry)
                self.flying.discard(key)
            self.report.node_finished(one.node, one.entry, cached=reused and one.node.spec.is_output)

    async def _answer(self, call: NodeCall) -> _Answer:
        node = call.node
        if call.kind == "ask" or not call.again:
            self.report.node_started(node)
        context = self._context(node)
        current_context.set(context)
        if call.kind == "ask":
            return _Needs(await self._needs(call, context))
        entry = await self._known_elsewhere(node)
        if entry is not None:
            return entry
        results = [await self.services.saved(self.job.id, one) for one in await self._invoked(call, context)]
        return _Results(results, await self._expanded(node, results))

    async def _known_elsewhere(self, node: Node) -> Entry | None:
        """The result, when some job has left it or is computing it; else it is up to this one."""
        key = self.keys.get(node.id)
        if key is None:
            return None
        hear = functools.partial(self._hear, node)
        entry = self.services.cache.get(key) or await self.services.flights.join(key, hear)
        if entry is None:
            self.flying.add(key)
        return entry

    def _hear(self, node: Node, event: Told) -> None:
        """How far another job is with what this node waits for, as news of this one."""
        if not isinstance(event, NodePreview) or self._sends_previews:
            job, name = self.job, name_of(node)
            self.services.publish(replace(event, prompt_id=job.id, client_id=job.client_id, node=name))

    def _tell(self, key: Key, event: Event) -> None:
        self.services.publish(event)
        if key is not None and isinstance(event, Told):
            self.services.flights.tell(key, event)

    async def _needs(self, call: NodeCall, context: JobNodeContext) -> list[str]:
        lazy_needs = call.node.spec.lazy_needs
        assert lazy_needs is not None, call.node.spec.id
        hidden = hidden_inputs(call.node, context.hidden)
        names: list[str] = []
        for inputs in call.invocations:
            if blocker_in(call.node, inputs) is None:
                ask = functools.partial(lazy_needs, context, **nested(call.node.slots, inputs), **hidden)
                names.extend(await call_plain(self.services, self.job.id, call.node, ask) or ())
        return names

    async def _invoked(self, call: NodeCall, context: JobNodeContext) -> list[NodeResult]:
        before = seen(call.invocations)
        numbered = list(enumerate(call.invocations))
        if call.node.spec.is_async:
            results = await together([self._one_result(call, context, i, one) for i, one in numbered])
        else:
            results = [await self._one_result(call, context, i, one) for i, one in numbered]
        if changed := before.changed():
            self._forget_changed(call.node, changed)
        return results

    def _forget_changed(self, node: Node, changed: list[Any]) -> None:
        """The cache must not hand out what a node has overwritten; who has it already sees the change."""
        log.warning("%s (node %s) changes its inputs in place; it should copy them", node.spec.id, node.id)
        for id, key in self.keys.items():
            entry = self.plan.entry(id)
            if key is not None and entry is not None and holds_any(entry.outputs, changed):
                self.services.cache.forget(key)

    async def _one_result(
        self, call: NodeCall, context: JobNodeContext, index: int, inputs: Mapping[str, Any]
    ) -> NodeResult:
        node = call.node
        blocker = blocker_in(node, inputs)
        if blocker is not None:
            self._report_blocker(node, blocker)
            return blocked(node)
        context.check_cancelled()
        current_invocation.set(Invocation(index))
        hidden = hidden_inputs(node, context.hidden)
        copies = Copies(self.services.faces if node.spec.foreign else NoFaces())
        given = copies.inputs(inputs) if node.spec.pack else inputs
        function = functools.partial(node.spec.call, context, **nested(node.slots, given), **hidden)
        call_it = call_coroutine if node.spec.is_async else call_plain
        result = await call_it(self.services, self.job.id, node, function)
        if not isinstance(result, NodeResult):
            raise TypeError(f"{node.spec.id} returned {type(result).__name__}, not a NodeResult")
        return replace(result, values=copies.restored(tuple(result.values))) if node.spec.pack else result

    def _report_blocker(self, node: Node, blocker: Blocker) -> None:
        if blocker.message is not None and id(blocker) not in self.reported_blockers:
            self.reported_blockers.add(id(blocker))
            self.report.node_blocked(node, blocker, self.plan.finished)

    async def _expanded(self, node: Node, results: Sequence[NodeResult]) -> list[Node]:
        added: list[Node] = []
        for result in results:
            if result.expand:
                added.extend(parse_expansion(result.expand, node, self.services.specs, self.services.library))
                for new in added:
                    self.prompt.add(new, result.expand.get(new.id, {}))
        if added:
            stamps = await self._stamps(added)
            self._add_keys(expansion_keys(added, self.keys.get(node.id), self.keys, stamps))
        return added

    def _add_keys(self, keys: Mapping[str, Key]) -> None:
        if self.services.keeps == "nothing":
            return
        self.keys.update(keys)
        for key in keys.values():
            if key is not None:
                self.services.cache.pin(key)
                self.pinned.append(key)

    async def _stamps(self, nodes: Iterable[Node]) -> dict[str, Key]:
        return await stamps_of(
            nodes,
            self.services.library,
            hidden=lambda node: hidden_inputs(node, self._hidden(node)),
            call=functools.partial(call_plain, self.services, self.job.id),
        )

    def _hidden(self, node: Node) -> dict[str, Any]:
        return context_hidden(node, self.prompt, self.job.extra_data, self.job.sensitive)

    @property
    def _sends_previews(self) -> bool:
        return self.job.extra_data.get("preview_method") != "none"

    def _context(self, node: Node) -> JobNodeContext:
        publish = functools.partial(self._tell, self.keys.get(node.id))
        return JobNodeContext(
            name_of(node),
            self.job.id,
            self.job.client_id,
            self._hidden(node),
            self.job.stop,
            replace(self.services, publish=publish),
            self._sends_previews,
        )

    async def _failed(self, call: NodeCall, error: BaseException) -> None:
        self.plan.fail(call.node.id)
        await self._give_up_calls()
        if self.job.stop.is_set or isinstance(error, JobInterrupted):
            self.report.interrupted(call.node, self.plan.finished)
        else:
            self._report_failure(call.node, error, inputs_of(call))

    async def _interrupted(self) -> None:
        running = [call.node for call in self.tasks.values()]
        await self._give_up_calls()
        self.report.interrupted(running[0] if running else None, self.plan.finished)

    def _stuck(self) -> None:
        node = self.plan.nodes[self.plan.waiting[0]]
        self._report_failure(node, DependencyCycle(f"Dependency cycle detected at node {node.id}"), {})

    def _report_failure(self, node: Node, error: BaseException, inputs: Mapping[str, Sequence[Any]]) -> None:
        self.report.failed(self.plan.nodes.get(node.real_id, node), error, inputs, self.plan.finished)

    async def _give_up_calls(self) -> None:
        """Returns when nothing of this job runs any more, except for a pack that would not stop."""
        if not self.tasks:
            return
        self.plan.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for call in self.tasks.values():
            self.plan.drop(call.node.id)
        self.tasks.clear()

    def _let_others_fly(self) -> None:
        for key in self.flying:
            self.services.flights.land(key, None)
        self.flying.clear()


def inputs_of(call: NodeCall) -> dict[str, list[Any]]:
    """Items by input name, as an error shows them."""
    inputs: dict[str, list[Any]] = {}
    for invocation in call.invocations:
        for name, value in invocation.items():
            inputs.setdefault(name, []).append(value)
    return inputs
