"""From a prompt's JSON to a frozen Graph. It knows node classes by the registry and judges no values."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from app.graph.complaints import Complaint, PromptRejected, invalid_prompt, missing_node_type
from app.graph.dynamic import live_slots
from nodes.spec import Library, NodeSpec, Slot

log = logging.getLogger(__name__)


class Specs(Protocol):
    """The part of the node registry that a parser needs."""

    def find(self, id: str) -> NodeSpec | None: ...


@dataclass(frozen=True, slots=True)
class Link:
    node_id: str
    slot: int

    def as_json(self) -> list[Any]:
        return [self.node_id, self.slot]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """`constants` and `links` hold declared inputs only. A list that is no link stays in `broken_links`.

    `display_id` is the box on the canvas; it differs from `id` inside an expansion, where `parent_id` is the
    node that expanded.
    """

    id: str
    spec: NodeSpec
    slots: tuple[Slot, ...]
    constants: Mapping[str, Any]
    links: Mapping[str, Link]
    broken_links: Mapping[str, list[Any]] = field(default_factory=dict)
    display_id: str = ""
    real_id: str = ""
    parent_id: str | None = None

    def followed_links(self) -> Iterator[tuple[Slot, Link]]:
        """The links whose values the node may ask for, in declared order."""
        for slot in self.slots:
            if slot.name in self.links and not slot.wants_link:
                yield slot, self.links[slot.name]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """`prompt` is the JSON as it was posted, or with coerced constants once the graph is validated."""

    nodes: Mapping[str, Node]
    prompt: Mapping[str, Any]


def parse(prompt: Any, specs: Specs, library: Library) -> Graph | PromptRejected:
    if not isinstance(prompt, dict):
        return PromptRejected(invalid_prompt("the prompt must be an object of nodes by id"))
    declared: dict[str, tuple[Slot, ...]] = {}
    nodes = {}
    for id, entry in prompt.items():
        node = parse_node(str(id), entry, specs, library, declared)
        if isinstance(node, Complaint):
            return PromptRejected(node)
        nodes[node.id] = node
    return Graph(nodes, prompt)


def parse_expansion(prompt: Mapping[str, Any], parent: Node, specs: Specs, library: Library) -> list[Node]:
    """The nodes that a running node asks for; a wrong one raises ValueError in the complaint's words."""
    declared: dict[str, tuple[Slot, ...]] = {}
    nodes = []
    for id, entry in prompt.items():
        node = parse_node(str(id), entry, specs, library, declared)
        if isinstance(node, Complaint):
            raise ValueError(f"{node.message} {node.details}")
        display = str(entry.get("override_display_id") or parent.display_id)
        nodes.append(replace(node, display_id=display, real_id=parent.real_id, parent_id=parent.id))
    return nodes


def parse_node(
    id: str, entry: Any, specs: Specs, library: Library, declared: dict[str, tuple[Slot, ...]]
) -> Node | Complaint:
    """`declared` remembers the inputs of classes already met, because asking for them may list folders."""
    fields = entry if isinstance(entry, dict) else {}
    class_type, meta = fields.get("class_type"), fields.get("_meta")
    title = meta.get("title") if isinstance(meta, dict) else None
    if not isinstance(class_type, str):
        return missing_node_type(id, None, str(title or id))
    spec = specs.find(class_type)
    if spec is None:
        return missing_node_type(id, class_type, str(title or class_type))
    given = fields.get("inputs")
    try:
        if class_type not in declared:
            declared[class_type] = spec.inputs(library)
        return _node(id, spec, declared[class_type], given if isinstance(given, dict) else {})
    # a pack's own declaration, which must cost its prompt alone
    except Exception as error:
        log.exception("the inputs of %s cannot be listed", class_type)
        return invalid_prompt(f"the inputs of {class_type} cannot be listed: {error!r}")


def _node(id: str, spec: NodeSpec, slots: tuple[Slot, ...], given: Mapping[str, Any]) -> Node:
    slots = live_slots(slots, given)
    if spec.accepts_any_input or spec.accepts_any_link:
        known = {slot.name for slot in slots}
        extra = [name for name in given if name not in known]
        slots = (
            *slots,
            *(Slot(n, "*", "optional") for n in extra if spec.accepts_any_input or as_link(given[n])),
        )
    constants: dict[str, Any] = {}
    links: dict[str, Link] = {}
    broken: dict[str, list[Any]] = {}
    for slot in slots:
        if slot.is_automatic or slot.name not in given:
            continue
        value = given[slot.name]
        if as_link(value) is not None:
            links[slot.name] = Link(value[0], int(value[1]))
        elif isinstance(value, list):
            broken[slot.name] = value
        else:
            constants[slot.name] = unwrapped(value)
    return Node(id, spec, slots, constants, links, broken, display_id=id, real_id=id)


def as_link(value: Any) -> Link | None:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        return None
    if isinstance(value[1], bool) or not isinstance(value[1], int | float) or not math.isfinite(value[1]):
        return None
    return Link(value[0], int(value[1]))


def unwrapped(value: Any) -> Any:
    """A literal list travels as `{"__value__": [...]}`, because a bare one would be a link."""
    if isinstance(value, dict) and "__value__" in value:
        return value["__value__"]
    return value
