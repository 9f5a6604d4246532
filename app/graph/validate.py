"""Is this prompt worth queueing? Every fault is found, and outputs without fault may run without the others.

The posted JSON is never changed: constants of their right type live in the returned Graph, and in its own
copy of the prompt.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.graph import complaints as say
from app.graph.complaints import Complaint, NodeComplaints, PromptRejected
from app.graph.constants import coerced, complaint_about
from app.graph.dynamic import nested
from app.graph.match import types_match
from app.graph.parse import Graph, Link, Node, Specs, parse
from nodes.spec import Blocker, Library, Slot

Consumer = tuple[Slot, Link]


@dataclass(frozen=True, slots=True, eq=False)
class ValidGraph:
    """`outputs` are the output nodes to run; `node_errors` explains those that were dropped."""

    graph: Graph
    outputs: tuple[str, ...]
    node_errors: Mapping[str, NodeComplaints]

    def node_errors_json(self) -> dict[str, Any]:
        return {id: node.as_json() for id, node in self.node_errors.items()}


@dataclass(frozen=True, slots=True)
class _Verdict:
    constants: Mapping[str, Any]
    errors: tuple[Complaint, ...]


def parse_and_validate(
    prompt: Any, specs: Specs, library: Library, targets: Sequence[str] | None = None
) -> ValidGraph | PromptRejected:
    """Lists folders and calls the checks of packs, so it may block: call it in a worker thread.

    `targets` keeps only these output nodes; None keeps all.
    """
    graph = parse(prompt, specs, library)
    if isinstance(graph, PromptRejected):
        return graph
    outputs = [
        n.id for n in graph.nodes.values() if n.spec.is_output and (targets is None or n.id in targets)
    ]
    if not outputs:
        return PromptRejected(say.no_outputs())
    walk = _walk(graph, outputs)
    verdicts = {id: _judge(graph, graph.nodes[id], id in outputs, walk, library) for id in walk.order}
    sound = _sound(graph, walk, verdicts)
    failing = [id for id in outputs if id not in sound]
    node_errors = _node_errors(graph, failing, verdicts)
    if len(failing) == len(outputs):
        on_outputs = [error for id in failing for error in verdicts[id].errors]
        return PromptRejected(say.outputs_failed(on_outputs), node_errors)
    return ValidGraph(
        _with_constants(graph, verdicts), tuple(id for id in outputs if id in sound), node_errors
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    """`order` has inputs before consumers; `led_by` the consumer through which a node was first met."""

    order: tuple[str, ...]
    led_by: Mapping[str, Consumer]
    cycles: Mapping[str, Complaint]


def _walk(graph: Graph, outputs: Sequence[str]) -> _Walk:
    """Depth first without recursion, because chains may be longer than Python's stack."""
    order: list[str] = []
    led_by: dict[str, Consumer] = {}
    cycles: dict[str, Complaint] = {}
    seen: set[str] = set()
    for root in outputs:
        path: dict[str, Iterator[Consumer]] = {}
        if root not in seen:
            seen.add(root)
            path[root] = iter(_links_to_nodes(graph, root))
        while path:
            current = next(reversed(path))
            consumer = next(path[current], None)
            if consumer is None:
                path.pop(current)
                order.append(current)
                continue
            upstream = consumer[1].node_id
            if upstream in path:
                cycles.setdefault(upstream, _cycle(graph, list(path), upstream))
            elif upstream not in seen:
                seen.add(upstream)
                led_by[upstream] = consumer
                path[upstream] = iter(_links_to_nodes(graph, upstream))
    return _Walk(tuple(order), led_by, cycles)


def _links_to_nodes(graph: Graph, id: str) -> list[Consumer]:
    node = graph.nodes[id]
    return [
        (slot, node.links[slot.name])
        for slot in node.slots
        if slot.name in node.links and node.links[slot.name].node_id in graph.nodes
    ]


def _cycle(graph: Graph, path: Sequence[str], start: str) -> Complaint:
    ring = [*path[path.index(start) :], start]
    return say.dependency_cycle(start, [(id, graph.nodes[id].spec.id) for id in ring])


def _judge(graph: Graph, node: Node, is_output: bool, walk: _Walk, library: Library) -> _Verdict:
    cycle = walk.cycles.get(node.id)
    try:
        verdict = _judge_inputs(graph, node, library)
    # a link into nowhere, or a pack's own check, which may raise anything: both end this node's judgement
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if is_output:
            verdict = _Verdict(node.constants, (say.exception_on_output(error),))
        else:
            slot, link = walk.led_by[node.id]
            verdict = _Verdict(node.constants, (say.exception_upstream(error, slot, link.as_json()),))
    return replace(verdict, errors=(*verdict.errors, cycle)) if cycle else verdict


def _judge_inputs(graph: Graph, node: Node, library: Library) -> _Verdict:
    constants = dict(node.constants)
    errors: list[Complaint] = []
    checks_types = "input_types" not in node.spec.checked_inputs
    for slot in node.slots:
        if slot.group == "hidden":
            continue
        elif slot.name in node.broken_links:
            errors.extend(_broken(slot, node.broken_links[slot.name], node))
        elif slot.name in node.links:
            link = node.links[slot.name]
            received = _received_type(graph, node, slot, link)
            if checks_types and not types_match(received, slot.config()[0]):
                errors.append(say.return_type_mismatch(slot, received, link.as_json()))
        elif slot.name in constants:
            value = coerced(slot, constants[slot.name])
            if isinstance(value, Complaint):
                errors.append(value)
                continue
            constants[slot.name] = value
            if not _checks_itself(node, slot.name) and (found := complaint_about(slot, value, library)):
                errors.append(found)
        elif slot.group == "required":
            errors.append(say.required_input_missing(slot.name))
    if not errors and node.spec.check is not None:
        errors.extend(_custom_complaints(graph, node, constants, library))
    return _Verdict(constants, tuple(errors))


def _broken(slot: Slot, value: list[Any], node: Node) -> Iterable[Complaint]:
    if len(value) == 2:
        raise _missing_node(value[0], slot, node)
    yield say.bad_linked_input(slot, value)


def _received_type(graph: Graph, node: Node, slot: Slot, link: Link) -> Any:
    source = graph.nodes.get(link.node_id)
    if source is None:
        raise _missing_node(link.node_id, slot, node)
    outputs = source.spec.outputs
    if not 0 <= link.slot < len(outputs):
        fault = IndexError("tuple index out of range")
        fault.add_note(
            f"Input '{slot.name}' of node {node.id} links to output {link.slot} of node {link.node_id}, "
            f"which has {len(outputs)}."
        )
        raise fault
    output = outputs[link.slot]
    return list(output.choices) if output.choices is not None else output.type


def _missing_node(id: object, slot: Slot, node: Node) -> KeyError:
    fault = KeyError(id)
    fault.add_note(
        f"Input '{slot.name}' of node {node.id} links to node {id}, which the prompt does not have."
    )
    return fault


def _checks_itself(node: Node, name: str) -> bool:
    return name in node.spec.checked_inputs or "*" in node.spec.checked_inputs


def _custom_complaints(
    graph: Graph, node: Node, constants: Mapping[str, Any], library: Library
) -> Iterable[Complaint]:
    assert node.spec.check is not None
    known = nested(node.slots, {name: constants.get(name) for name in (*constants, *node.links)})
    given = {name: value for name, value in known.items() if _checks_itself(node, name)}
    extra = {}
    if "input_types" in node.spec.checked_inputs:
        slots = {slot.name: slot for slot in node.slots}
        extra["input_types"] = {
            name: _received_type(graph, node, slots[name], link) for name, link in node.links.items()
        }
    verdict = node.spec.check(library, **given, **extra)
    if inspect.isawaitable(verdict):
        verdict = asyncio.run(_awaited(verdict))
    if verdict is True or isinstance(verdict, Blocker):
        return []
    return [say.custom_validation_failed(name, verdict) for name in (*given, *extra)]


async def _awaited(value: Any) -> Any:
    return await value


def _sound(graph: Graph, walk: _Walk, verdicts: Mapping[str, _Verdict]) -> set[str]:
    sound: set[str] = set()
    for id in walk.order:
        upstream = {link.node_id for _, link in _links_to_nodes(graph, id)}
        if not verdicts[id].errors and upstream <= sound:
            sound.add(id)
    return sound


def _node_errors(
    graph: Graph, failing: Sequence[str], verdicts: Mapping[str, _Verdict]
) -> dict[str, NodeComplaints]:
    dependents: dict[str, list[str]] = {}
    for output in failing:
        for id in _walk(graph, [output]).order:
            if verdicts[id].errors:
                dependents.setdefault(id, []).append(output)
    return {
        id: NodeComplaints(graph.nodes[id].spec.id, verdicts[id].errors, tuple(outputs))
        for id, outputs in dependents.items()
    }


def _with_constants(graph: Graph, verdicts: Mapping[str, _Verdict]) -> Graph:
    nodes = dict(graph.nodes)
    prompt = dict(graph.prompt)
    for id, verdict in verdicts.items():
        nodes[id] = replace(nodes[id], constants=verdict.constants)
        given = prompt[id].get("inputs")
        inputs = given if isinstance(given, dict) else {}
        prompt[id] = {**prompt[id], "inputs": {**inputs, **verdict.constants}}
    return Graph(nodes, prompt)
