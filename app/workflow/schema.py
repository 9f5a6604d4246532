"""A saved workflow (version 0.4 or 1) as data, tolerant of what is missing. Knows no node definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.workflow.tolerant import mapping, mappings, sequence

SUBGRAPH_INPUT = "-10"
SUBGRAPH_OUTPUT = "-20"
MUTED = 2
BYPASSED = 4


class NotAWorkflow(ValueError):
    """The JSON is not a saved workflow; the text says why."""


@dataclass(frozen=True, slots=True)
class Link:
    id: str
    origin: str
    origin_slot: int
    target: str
    target_slot: int


@dataclass(frozen=True, slots=True)
class InputSlot:
    """`widget` is the name of the widget that the slot belongs to, where it belongs to one."""

    name: str
    type: str
    link: str | None
    widget: str | None
    label: str | None


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    type: str
    mode: int
    title: str | None
    inputs: tuple[InputSlot, ...]
    output_types: tuple[str, ...]
    values: list[Any] | dict[str, Any] | None
    named_values: dict[str, Any] | None
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a subgraph; `links` are the inner links at it, in order."""

    name: str
    type: str
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The root graph or one subgraph definition."""

    id: str
    name: str
    nodes: dict[str, Node]
    links: dict[str, Link]
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()


@dataclass(frozen=True, slots=True)
class Workflow:
    """`everywhere`: links of the root that the pack "Use Everywhere" keeps beside the list of links."""

    root: Scope
    definitions: dict[str, Scope] = field(default_factory=dict)
    renumbered: dict[str, dict[str, str]] = field(default_factory=dict)
    everywhere: tuple[Link, ...] = ()


def is_workflow(document: Any) -> bool:
    """Whether this is a saved workflow rather than an API prompt."""
    return isinstance(document, dict) and isinstance(document.get("nodes"), list)


def read_workflow(document: Any) -> Workflow:
    """Raises `NotAWorkflow` when there is no list of nodes."""
    if not is_workflow(document):
        raise NotAWorkflow("a saved workflow is a JSON object with a list 'nodes'; this is something else")
    root = _scope(document, "root", "root")
    definitions: dict[str, Scope] = {}
    for scope in _definitions(document):
        definitions.setdefault(scope.id, scope)
    workflow = _renumber(root, definitions, _highest_id(document, root, definitions))
    return replace(workflow, everywhere=tuple(_everywhere(mapping(document.get("extra")))))


def _definitions(document: Mapping[str, Any]) -> Iterator[Scope]:
    for raw in mappings(mapping(document.get("definitions")).get("subgraphs")):
        yield _scope(raw, str(raw.get("id")), str(raw.get("name") or raw.get("id")))
        yield from _definitions(raw)


def _scope(raw: Mapping[str, Any], scope_id: str, name: str) -> Scope:
    nodes: dict[str, Node] = {}
    for entry in mappings(raw.get("nodes")):
        node = read_node(entry)
        nodes.setdefault(node.id, node)
    links: dict[str, Link] = {}
    for entry in sequence(raw.get("links")):
        link = _link(entry)
        if link is not None:
            links.setdefault(link.id, link)
    inputs = _with_links(_ports(raw.get("inputs")), links.values())
    return Scope(scope_id, name, nodes, links, inputs, _ports(raw.get("outputs")))


def read_node(raw: Mapping[str, Any]) -> Node:
    values, named = raw.get("widgets_values"), raw.get("widgets_values_named")
    mode = raw.get("mode")
    title = raw.get("title")
    return Node(
        id=str(raw.get("id")),
        type=str(raw.get("type") or ""),
        mode=mode if isinstance(mode, int) else 0,
        title=title if isinstance(title, str) else None,
        inputs=tuple(_input_slot(slot) for slot in mappings(raw.get("inputs"))),
        output_types=tuple(_type_name(slot.get("type")) for slot in mappings(raw.get("outputs"))),
        values=values if isinstance(values, list | dict) else None,
        named_values=named if isinstance(named, dict) else None,
        properties=mapping(raw.get("properties")),
    )


def _input_slot(raw: Mapping[str, Any]) -> InputSlot:
    widget = raw.get("widget")
    link = raw.get("link")
    return InputSlot(
        name=str(raw.get("name") or ""),
        type=_type_name(raw.get("type")),
        link=None if link is None else str(link),
        widget=str(mapping(widget).get("name") or raw.get("name") or "") if widget else None,
        label=next((str(raw[key]) for key in ("label", "localized_name") if raw.get(key)), None),
    )


def _link(raw: Any) -> Link | None:
    if isinstance(raw, dict):
        keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot")
        parts = [raw.get(key) for key in keys]
    elif isinstance(raw, list) and len(raw) >= 5:
        parts = raw[:5]
    else:
        return None
    link_id, origin, origin_slot, target, target_slot = parts
    return Link(str(link_id), str(origin), _whole(origin_slot), str(target), _whole(target_slot))


def _everywhere(extra: Mapping[str, Any]) -> Iterator[Link]:
    for number, raw in enumerate(mappings(extra.get("ue_links"))):
        ends = [raw.get(key) for key in ("upstream", "upstream_slot", "downstream", "downstream_slot")]
        yield Link(f"everywhere {number}", str(ends[0]), _whole(ends[1]), str(ends[2]), _whole(ends[3]))


def _ports(raw: Any) -> tuple[Port, ...]:
    return tuple(
        Port(
            str(port.get("name") or ""),
            _type_name(port.get("type")),
            tuple(str(link) for link in sequence(port.get("linkIds"))),
        )
        for port in mappings(raw)
    )


def _with_links(ports: tuple[Port, ...], links: Iterable[Link]) -> tuple[Port, ...]:
    """Where the file does not list the links of an input, those that start there."""
    starting: dict[int, list[str]] = {}
    for link in links:
        if link.origin == SUBGRAPH_INPUT:
            starting.setdefault(link.origin_slot, []).append(link.id)
    return tuple(
        port if port.links else replace(port, links=tuple(starting.get(index, ())))
        for index, port in enumerate(ports)
    )


def _highest_id(document: Mapping[str, Any], root: Scope, definitions: Mapping[str, Scope]) -> int:
    counters = [document.get("last_node_id"), mapping(document.get("state")).get("lastNodeId")]
    ids = [node_id for scope in (root, *definitions.values()) for node_id in scope.nodes]
    return max([_whole(value) for value in (*counters, *ids)], default=0)


def _renumber(root: Scope, definitions: dict[str, Scope], highest: int) -> Workflow:
    """Inner ids that are taken already, by the root or an earlier definition, get new numbers."""
    taken = set(root.nodes)
    result: dict[str, Scope] = {}
    renumbered: dict[str, dict[str, str]] = {}
    for scope in definitions.values():
        new_ids: dict[str, str] = {}
        for node_id in scope.nodes:
            if node_id in taken:
                highest += 1
                new_ids[node_id] = str(highest)
            taken.add(new_ids.get(node_id, node_id))
        result[scope.id] = _with_ids(scope, new_ids)
        if new_ids:
            renumbered[scope.id] = new_ids
    return Workflow(root, result, renumbered)


def _with_ids(scope: Scope, new_ids: Mapping[str, str]) -> Scope:
    nodes = {
        new_ids.get(key, key): replace(node, id=new_ids.get(key, key)) for key, node in scope.nodes.items()
    }
    links = {
        key: replace(
            link,
            origin=new_ids.get(link.origin, link.origin),
            target=new_ids.get(link.target, link.target),
        )
        for key, link in scope.links.items()
    }
    return replace(scope, nodes=nodes, links=links)


def _type_name(raw: Any) -> str:
    if isinstance(raw, list):
        return "COMBO"
    return "*" if raw in (None, "", 0) else str(raw)


def _whole(raw: Any) -> int:
    try:
        return int(raw)
    except (TypeError, ValueError, OverflowError):
        return 0
