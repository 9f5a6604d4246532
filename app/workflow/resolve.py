"""Where a link really comes from, through reroutes, bypassed nodes and the walls of subgraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.instance import Instance, primitive_value
from app.workflow.report import Report
from app.workflow.schema import BYPASSED, MUTED, SUBGRAPH_INPUT, SUBGRAPH_OUTPUT, Link, Node
from app.workflow.slots import Slot, node_slots, output_type
from app.workflow.tree import Definitions
from app.workflow.virtual import GETTERS, REROUTES, SETTERS, is_virtual


@dataclass(frozen=True, slots=True)
class Source:
    """An output of a node that will be in the prompt."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A promoted value, or one of a PrimitiveNode, which its target rounds."""

    value: Any
    is_primitive: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """A link still to be followed; `wanted` is the type that its end asks for."""

    instance: Instance
    link: Link
    wanted: str


Resolved = Source | Constant | None


class LinkLoop(ValueError):
    """A link leads back to itself."""


@dataclass(frozen=True, slots=True)
class Resolver:
    definitions: Definitions
    strict: bool
    report: Report

    def follow(self, instance: Instance, link: Link, wanted: str) -> Resolved:
        """`wanted` is the consumer's type. Raises `LinkLoop`."""
        seen: set[tuple[tuple[str, ...], str]] = set()
        promoted: Constant | None = None
        at: Hop | Resolved = Hop(instance, link, wanted)
        while isinstance(at, Hop):
            step = (at.instance.path, at.link.id)
            if step in seen:
                name = at.instance.scope.name
                raise LinkLoop(f"link {at.link.id} of '{name}' leads back to itself")
            seen.add(step)
            if at.link.origin == SUBGRAPH_INPUT:
                promoted = _promoted(at) or promoted
            at = self._step(at)
        # ComfyUI's front end drops the promoted value when what is linked over it leads nowhere
        return promoted if at is None and not self.strict else at

    def _step(self, hop: Hop) -> Hop | Resolved:
        instance, link = hop.instance, hop.link
        if link.origin == SUBGRAPH_INPUT:
            return _outwards(hop) or _promoted(hop)
        origin = instance.scope.nodes.get(link.origin)
        if origin is None:
            detail = f"link {link.id} comes from no node"
            self.report.warn(instance.execution_id(link.target), None, "dangling", detail)
            return None
        if is_virtual(origin.type, self.definitions, self.strict):
            return self._through_virtual(hop, origin)
        if origin.mode == MUTED:
            return None
        if origin.mode == BYPASSED:
            return self._through(hop, origin)
        if origin.id in instance.children:
            return _inwards(instance.children[origin.id], link.origin_slot, hop.wanted)
        return Source(instance.execution_id(origin.id), link.origin_slot)

    def _through_virtual(self, hop: Hop, origin: Node) -> Hop | Resolved:
        if origin.type in REROUTES or origin.type in SETTERS:
            return _first_input(hop.instance, origin, hop.wanted)
        if origin.type in GETTERS:
            return _named_setter(hop, origin)
        if origin.type != "PrimitiveNode" or self.strict:
            return None
        value = hop.instance.primitives[origin.id]
        return None if value is NOTHING else Constant(value, is_primitive=True)

    def _through(self, hop: Hop, node: Node) -> Hop | None:
        """A bypassed node passes on the input that fits best."""
        definition = self.definitions.get(node.type, {})
        index = hop.link.origin_slot
        slots = node_slots(node, definition, hop.instance.widgets.get(node.id, ()))
        chosen = _pass_on(slots, index, output_type(node, definition, index), hop.wanted)
        if chosen is None:
            return None
        name, kind = chosen
        link = hop.instance.incoming.get(node.id, {}).get(name)
        return None if link is None else Hop(hop.instance, link, kind)


def _outwards(hop: Hop) -> Hop | None:
    """From an input of a subgraph to what is linked to the host's input of the same name."""
    instance, ports = hop.instance, hop.instance.scope.inputs
    if instance.parent is None or instance.host is None or not 0 <= hop.link.origin_slot < len(ports):
        return None
    name = ports[hop.link.origin_slot].name
    outer = instance.parent.incoming.get(instance.host.id, {}).get(name)
    return None if outer is None else Hop(instance.parent, outer, hop.wanted)


def _promoted(hop: Hop) -> Constant | None:
    ports = hop.instance.scope.inputs
    if not 0 <= hop.link.origin_slot < len(ports):
        return None
    value = hop.instance.promoted.get(ports[hop.link.origin_slot].name, NOTHING)
    return None if value is NOTHING else Constant(value)


def _inwards(child: Instance, index: int, wanted: str) -> Hop | None:
    for link in child.scope.links.values():
        if link.target == SUBGRAPH_OUTPUT and link.target_slot == index:
            return Hop(child, link, wanted)
    return None


def _first_input(instance: Instance, node: Node, wanted: str) -> Hop | None:
    link = next(iter(instance.incoming.get(node.id, {}).values()), None)
    return None if link is None else Hop(instance, link, wanted)


def _named_setter(hop: Hop, getter: Node) -> Hop | None:
    """The node of the same name that sets what this one gets, here or further outside."""
    name, scope = primitive_value(getter), hop.instance
    while True:
        for node in scope.scope.nodes.values():
            if node.type in SETTERS and primitive_value(node) == name:
                return _first_input(scope, node, hop.wanted)
        if scope.parent is None:
            return None
        scope = scope.parent


def compatible(left: str, right: str) -> bool:
    """Equal ignoring case, or either is anything, or their comma lists meet."""
    if left in ("*", "") or right in ("*", ""):
        return True
    return bool(_types(left) & _types(right))


def _types(text: str) -> set[str]:
    return {part.strip() for part in text.lower().split(",")}


def _pass_on(slots: list[Slot], index: int, output: str, wanted: str) -> Slot | None:
    if not slots:
        return None
    if wanted in ("*", ""):
        return slots[index] if 0 <= index < len(slots) else slots[0]

    def fits(kind: str) -> bool:
        return compatible(kind, output) and compatible(kind, wanted)

    if 0 <= index < len(slots) and fits(slots[index][1]):
        return slots[index]
    exact = next((slot for slot in slots if slot[1] == wanted), None)
    return exact or next((slot for slot in slots if fits(slot[1])), None)
