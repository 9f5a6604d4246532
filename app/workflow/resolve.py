"""Where a link really comes from, through reroutes, bypassed nodes and the walls of subgraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.workflow.instances import Definitions, Instance, primitive_value, slot_named
from app.workflow.report import Report
from app.workflow.schema import BYPASSED, MUTED, SUBGRAPH_INPUT, SUBGRAPH_OUTPUT, Link, Node
from app.workflow.widgets import NOTHING, input_entries, is_socket


@dataclass(frozen=True, slots=True)
class Source:
    """An output of a node that will be in the prompt."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A promoted or primitive value."""

    value: Any


Resolved = Source | Constant | None


class LinkLoop(ValueError):
    """A link leads back to itself."""


@dataclass(frozen=True, slots=True)
class Resolver:
    definitions: Definitions
    strict: bool
    report: Report

    def follow(
        self, instance: Instance, link: Link, wanted: str, seen: frozenset[tuple[Any, ...]] = frozenset()
    ) -> Resolved:
        """`wanted` is the consumer's type. Raises `LinkLoop`."""
        step = (instance.path, link.id)
        if step in seen:
            raise LinkLoop(f"link {link.id} of '{instance.scope.name}' leads back to itself")
        seen |= {step}
        if link.origin == SUBGRAPH_INPUT:
            return self._outwards(instance, link.origin_slot, wanted, seen)
        origin = instance.scope.nodes.get(link.origin)
        if origin is None:
            self.report.warn(
                instance.execution_id(link.target), None, "dangling", f"link {link.id} comes from no node"
            )
            return None
        if origin.type == "Reroute":
            before = next(
                (found for (node, _), found in instance.incoming.items() if node == origin.id), None
            )
            return self.follow(instance, before, wanted, seen) if before is not None else None
        if origin.type == "PrimitiveNode":
            value = NOTHING if self.strict else primitive_value(origin)
            return None if value is NOTHING else Constant(value)
        if origin.mode == MUTED:
            return None
        if origin.mode == BYPASSED:
            return self._through(instance, origin, link.origin_slot, wanted, seen)
        if origin.id in instance.children:
            return self._inwards(instance.children[origin.id], link.origin_slot, wanted, seen)
        return Source(instance.execution_id(origin.id), link.origin_slot)

    def input_type(self, node: Node, name: str) -> str:
        declared = {entry[0]: entry[1] for entry in input_entries(self.definitions.get(node.type, {}))}
        slot = slot_named(node, name)
        if name in declared:
            return declared[name]
        return slot.type if slot is not None else "*"

    def _outwards(
        self, instance: Instance, index: int, wanted: str, seen: frozenset[tuple[Any, ...]]
    ) -> Resolved:
        ports = instance.scope.inputs
        if instance.parent is None or instance.host is None or not 0 <= index < len(ports):
            return None
        name = ports[index].name
        outer = instance.parent.incoming.get((instance.host.id, name))
        if outer is not None:
            found = self.follow(instance.parent, outer, wanted, seen)
            if found is not None or self.strict:
                return found
        return Constant(instance.promoted[name]) if name in instance.promoted else None

    def _inwards(
        self, child: Instance, index: int, wanted: str, seen: frozenset[tuple[Any, ...]]
    ) -> Resolved:
        for link in child.scope.links.values():
            if link.target == SUBGRAPH_OUTPUT and link.target_slot == index:
                return self.follow(child, link, wanted, seen)
        return None

    def _through(
        self, instance: Instance, node: Node, index: int, wanted: str, seen: frozenset[tuple[Any, ...]]
    ) -> Resolved:
        """A bypassed node passes on the input that fits best."""
        slots = self._slots(instance, node)
        chosen = _pass_on(slots, index, self._output_type(node, index), wanted)
        if chosen is None:
            return None
        name, kind = chosen
        link = instance.incoming.get((node.id, name))
        return self.follow(instance, link, kind, seen) if link is not None else None

    def _slots(self, instance: Instance, node: Node) -> list[tuple[str, str]]:
        """Sockets as declared, then widgets, then what only the file knows."""
        entries = input_entries(self.definitions.get(node.type, {}))
        sockets = [
            (name, kind) for name, kind, *_ in filter(is_socket, entries) if "COMFY_AUTOGROW" not in kind
        ]
        widgets = [(widget.name, widget.type) for widget in instance.widgets.get(node.id, ()) if widget.sent]
        known = {name for name, _ in sockets + widgets}
        extra = [(slot.name, slot.type) for slot in node.inputs if slot.name not in known]
        return sockets + widgets + extra

    def _output_type(self, node: Node, index: int) -> str:
        if index < len(node.output_types):
            return node.output_types[index]
        declared = self.definitions.get(node.type, {}).get("output") or ()
        kind = declared[index] if index < len(declared) else "*"
        return kind if isinstance(kind, str) else "COMBO"


def compatible(left: str, right: str) -> bool:
    """Equal ignoring case, or either is anything, or their comma lists meet."""
    if left in ("*", "") or right in ("*", ""):
        return True
    return bool(set(left.lower().split(",")) & set(right.lower().split(",")))


def _pass_on(
    slots: list[tuple[str, str]], index: int, output_type: str, wanted: str
) -> tuple[str, str] | None:
    if not slots:
        return None
    if wanted in ("*", ""):
        return slots[index] if index < len(slots) else slots[0]

    def fits(kind: str) -> bool:
        return compatible(kind, output_type) and compatible(kind, wanted)

    if index < len(slots) and fits(slots[index][1]):
        return slots[index]
    exact = next((slot for slot in slots if slot[1] == wanted), None)
    return exact or next((slot for slot in slots if fits(slot[1])), None)
