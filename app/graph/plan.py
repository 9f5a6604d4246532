"""Which nodes of one job can run now. Events in (finish, need), decisions out (ready); no clock, no loop.

A node is wanted when an output needs it. A lazy input is wanted only when its node names it. A node that
answers with an expansion is finished when the new nodes that its values come from are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from app.graph.parse import Graph, Link, Node, as_link
from app.graph.values import Entry, Items, collected, invocations, merged_ui
from nodes.spec import NodeResult


class State(Enum):
    WAITING = "waiting"  # for wanted inputs
    READY = "ready"  # to be handed out by ready()
    RUNNING = "running"  # a call is out
    EXPANDED = "expanded"  # waits for its new nodes
    DONE = "done"


@dataclass(frozen=True, slots=True, eq=False)
class NodeCall:
    """`ask` wants the names of lazy inputs, `run` the results; one mapping of inputs for each invocation.

    `again` says that this node was handed out before.
    """

    node: Node
    kind: Literal["ask", "run"]
    invocations: tuple[Mapping[str, Any], ...]
    again: bool


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    node: Node
    entry: Entry


@dataclass(slots=True, eq=False)
class _Wanted:
    node: Node
    state: State = State.WAITING
    missing: set[str] = field(default_factory=set)
    unasked: set[str] = field(default_factory=set)
    must_ask: bool = False
    was_out: bool = False
    results: tuple[NodeResult, ...] = ()


class Plan:
    """`cached` are entries by node id that are known before the start; their inputs are not wanted."""

    def __init__(self, graph: Graph, outputs: Iterable[str], cached: Mapping[str, Entry]) -> None:
        self.nodes: dict[str, Node] = dict(graph.nodes)
        self.outputs = tuple(outputs)
        self._cached = dict(cached)
        self._wanted: dict[str, _Wanted] = {}
        self._consumers: dict[str, set[str]] = {}
        self._entries: dict[str, Entry] = {}
        self._ready: dict[str, None] = {}
        self._running: set[str] = set()
        self._distance = _distances(self.nodes, self.outputs)
        self._stopped = False
        for id in self.outputs:
            self._want(id)

    @property
    def done(self) -> bool:
        """All that was wanted is there, or the plan was stopped and nothing runs any more."""
        return not self._running if self._stopped else len(self._entries) == len(self._wanted)

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._running)

    @property
    def finished(self) -> tuple[str, ...]:
        """In the order in which they ended; cached ones are not among them."""
        return tuple(id for id in self._entries if id not in self._cached)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Wanted, and not finished or ready."""
        blocked = (State.WAITING, State.EXPANDED)
        return tuple(id for id, wanted in self._wanted.items() if wanted.state in blocked)

    def entry(self, id: str) -> Entry | None:
        return self._entries.get(id)

    def ready(self) -> list[NodeCall]:
        """Calls to start now, the ones near an output first. Each node is out at most once at a time."""
        if self._stopped:
            return []
        ready = sorted((self._wanted[id] for id in self._ready), key=self._urgency)
        self._ready.clear()
        return [self._call(wanted) for wanted in ready]

    def need(self, id: str, names: Iterable[str]) -> None:
        """The answer to an `ask`: lazy inputs to compute first; none means that the node may run."""
        wanted = self._out(id)
        unknown = set(names) - {slot.name for slot in wanted.node.slots}
        if unknown:
            raise ValueError(
                f"{wanted.node.spec.id} asks for inputs that it does not have: {sorted(unknown)}"
            )
        new = wanted.unasked & set(names)
        wanted.must_ask = bool(new)
        wanted.unasked -= new
        self._put_back(wanted)
        for name in sorted(new):
            self._wait_for(wanted, wanted.node.links[name].node_id)
        self._settle(wanted)

    def reuse(self, id: str, entry: Entry) -> tuple[Finished, ...]:
        """The node that is out need not run: somebody else had its result."""
        return self._finish(self._out(id), entry)

    def finish(
        self, id: str, results: Sequence[NodeResult], added: Sequence[Node] = ()
    ) -> tuple[Finished, ...]:
        """The answer to a `run`, with the parsed nodes of its expansions. Returns all that ended by it."""
        wanted = self._out(id)
        if not any(result.expand for result in results):
            return self._finish(wanted, collected(wanted.node, results))
        for node in added:
            if node.id in self.nodes:
                raise ValueError(f"the expansion of node {id} uses the id {node.id} a second time")
            self.nodes[node.id] = node
        links = [link for result in results if result.expand for link in _links(result.values)]
        self._check_links(id, [*links, *(link for node in added for _, link in node.followed_links())])
        wanted.results = tuple(results)
        wanted.state = State.EXPANDED
        self._running.discard(id)
        for source in [link.node_id for link in links] + [node.id for node in added if node.spec.is_output]:
            self._wait_for(wanted, source)
        return () if wanted.missing else self._finish(wanted, self._collapsed(wanted))

    def fail(self, id: str) -> None:
        """The node ended badly; the whole plan stops."""
        self.stop()
        if id in self._running:
            self.drop(id)

    def stop(self) -> None:
        """No more calls; those that are out are still to be dropped or finished by their owner."""
        self._stopped = True

    def drop(self, id: str) -> None:
        """A call that was out has been given up; only after a stop."""
        assert self._stopped, f"{id} dropped from a plan that goes on"
        self._put_back(self._out(id))

    def check(self) -> None:
        """What holds between any two events."""
        for id, wanted in self._wanted.items():
            assert (wanted.state is State.READY) == (id in self._ready), (id, wanted.state)
            assert (wanted.state is State.RUNNING) == (id in self._running), (id, wanted.state)
            assert (wanted.state is State.DONE) == (id in self._entries), (id, wanted.state)
            assert not wanted.missing or wanted.state in (State.WAITING, State.EXPANDED), (id, wanted)
            for source in wanted.missing:
                assert source not in self._entries, (id, source)
                assert source in self._wanted, (id, source)
                assert id in self._consumers[source], (id, source)
            if wanted.state in (State.READY, State.RUNNING):
                for slot, link in wanted.node.followed_links():
                    assert slot.name in wanted.unasked or link.node_id in self._entries, (id, slot.name)

    def _want(self, id: str) -> None:
        """Without recursion: chains may be longer than Python's stack."""
        todo = [id]
        while todo:
            id = todo.pop()
            if id in self._wanted or self._is_known(id):
                continue
            wanted = self._wanted[id] = _Wanted(self.nodes[id])
            for slot, link in wanted.node.followed_links():
                if slot.lazy and wanted.node.spec.lazy_needs is not None:
                    wanted.unasked.add(slot.name)
                    wanted.must_ask = True
                elif not self._is_known(link.node_id):
                    wanted.missing.add(link.node_id)
                    self._consumers.setdefault(link.node_id, set()).add(id)
                    todo.append(link.node_id)
            self._settle(wanted)

    def _is_known(self, id: str) -> bool:
        """A cached node counts from the moment that somebody wants it."""
        if id in self._cached and id not in self._wanted:
            self._wanted[id] = _Wanted(self.nodes[id], State.DONE)
            self._entries[id] = self._cached[id]
        return id in self._entries

    def _wait_for(self, wanted: _Wanted, source: str) -> None:
        if not self._is_known(source):
            wanted.missing.add(source)
            self._consumers.setdefault(source, set()).add(wanted.node.id)
            self._want(source)

    def _settle(self, wanted: _Wanted) -> None:
        if not wanted.missing and wanted.state is State.WAITING:
            wanted.state = State.READY
            self._ready[wanted.node.id] = None

    def _put_back(self, wanted: _Wanted) -> None:
        wanted.state = State.WAITING
        self._running.discard(wanted.node.id)

    def _out(self, id: str) -> _Wanted:
        wanted = self._wanted[id]
        assert wanted.state is State.RUNNING, f"node {id} is {wanted.state}, not running"
        return wanted

    def _urgency(self, wanted: _Wanted) -> int:
        if wanted.node.spec.is_output or wanted.node.spec.is_async:
            return 0
        return self._distance.get(wanted.node.id, 3)

    def _call(self, wanted: _Wanted) -> NodeCall:
        again, wanted.was_out = wanted.was_out, True
        wanted.state = State.RUNNING
        self._running.add(wanted.node.id)
        calls = invocations(wanted.node, self._inputs(wanted))
        return NodeCall(wanted.node, "ask" if wanted.must_ask else "run", calls, again)

    def _inputs(self, wanted: _Wanted) -> dict[str, Items]:
        """Every given input as a list of items; an unasked lazy one is None."""
        node = wanted.node
        inputs: dict[str, Items] = {}
        for slot in node.slots:
            if slot.name in node.constants:
                inputs[slot.name] = (node.constants[slot.name],)
            elif slot.name not in node.links:
                continue
            elif slot.wants_link:
                inputs[slot.name] = (node.links[slot.name].as_json(),)
            elif slot.name in wanted.unasked:
                inputs[slot.name] = (None,)
            else:
                link = node.links[slot.name]
                inputs[slot.name] = self._entries[link.node_id].outputs[link.slot]
        return inputs

    def _finish(self, wanted: _Wanted, entry: Entry) -> tuple[Finished, ...]:
        """The end of one node may be the end of the expansions around it, outwards."""
        ended: list[Finished] = []
        todo = [(wanted, entry)]
        while todo:
            wanted, entry = todo.pop()
            wanted.state = State.DONE
            self._running.discard(wanted.node.id)
            self._entries[wanted.node.id] = entry
            ended.append(Finished(wanted.node, entry))
            for id in sorted(self._consumers.pop(wanted.node.id, ())):
                consumer = self._wanted[id]
                consumer.missing.discard(wanted.node.id)
                if consumer.state is State.EXPANDED and not consumer.missing:
                    todo.append((consumer, self._collapsed(consumer)))
                else:
                    self._settle(consumer)
        return tuple(ended)

    def _check_links(self, id: str, links: Iterable[Link]) -> None:
        """Expansions come from node code, so nothing has validated them."""
        for link in links:
            source = self.nodes.get(link.node_id)
            if source is None or not 0 <= link.slot < len(source.spec.outputs):
                raise ValueError(f"the expansion of node {id} links to {link.as_json()}, which is not there")

    def _collapsed(self, wanted: _Wanted) -> Entry:
        """Values of an expansion that are links become what the links carry."""
        entries = [
            self._resolved(wanted.node, result) if result.expand else collected(wanted.node, [result])
            for result in wanted.results
        ]
        columns = tuple(
            tuple(item for entry in entries for item in entry.outputs[slot])
            for slot in range(len(wanted.node.spec.outputs))
        )
        return Entry(columns, merged_ui([entry.ui for entry in entries if entry.ui]))

    def _resolved(self, node: Node, result: NodeResult) -> Entry:
        if len(result.values) < len(node.spec.outputs):
            raise ValueError(
                f"{node.spec.id} declares {len(node.spec.outputs)} outputs; its expansion has less"
            )
        outputs = []
        for value in result.values:
            links = _links([value])
            outputs.append(self._entries[links[0].node_id].outputs[links[0].slot] if links else (value,))
        return Entry(tuple(outputs), result.ui)


def _links(values: Sequence[Any]) -> list[Link]:
    found = (as_link(list(value)) for value in values if isinstance(value, list | tuple))
    return [link for link in found if link is not None]


def _distances(nodes: Mapping[str, Node], outputs: Sequence[str]) -> dict[str, int]:
    """Links to the nearest output, as far as they matter for the order."""
    distance = dict.fromkeys(outputs, 0)
    layer = list(outputs)
    for far in (1, 2):
        layer = [
            link.node_id
            for id in layer
            for _, link in nodes[id].followed_links()
            if distance.setdefault(link.node_id, far) == far
        ]
    return distance
