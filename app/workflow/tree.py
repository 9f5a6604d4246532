"""The tree of subgraph instances: one definition used twice has two sets of widgets.

Values flow outside in: an instance's saved values replace those of the inner widgets that it promotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.instance import Instance, primitive_value, rounded
from app.workflow.promotion import Promotion
from app.workflow.report import Report
from app.workflow.schema import BYPASSED, MUTED, Node, Workflow
from app.workflow.slots import node_slots
from app.workflow.values import load_widgets

Definitions = Mapping[str, Mapping[str, Any]]
MAX_DEPTH = 32
MAX_NODES = 100_000


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds the tree of one workflow. `strict` follows ComfyUI's front end where we would do better."""

    workflow: Workflow
    definitions: Definitions
    strict: bool
    report: Report

    def build(self) -> Instance:
        """Raises `ValueError` for a subgraph that contains itself, or a tree of more than MAX_NODES."""
        num_nodes = self._num_nodes("root", self._inner_types("root"), 0, {})
        if num_nodes > MAX_NODES:
            raise ValueError(f"its subgraphs make {num_nodes} nodes; at most {MAX_NODES} are taken")
        return self._instance(Instance(self.workflow.root))

    def _inner_types(self, scope_id: str) -> list[str]:
        scope = self.workflow.root if scope_id == "root" else self.workflow.definitions[scope_id]
        return [node.type for node in scope.nodes.values()]

    def _num_nodes(self, scope_id: str, types: list[str], depth: int, known: dict[str, int]) -> int:
        """Nodes of a scope with all that its subgraphs bring, counted before any of it is made."""
        if depth > MAX_DEPTH:
            name = self.workflow.definitions[scope_id].name
            raise ValueError(f"subgraph '{name}' contains itself")
        total = len(types)
        for inner in types:
            if inner in self.workflow.definitions:
                if inner not in known:
                    known[inner] = self._num_nodes(inner, self._inner_types(inner), depth + 1, known)
                total += known[inner]
        return total

    def _instance(self, instance: Instance) -> Instance:
        for node in instance.scope.nodes.values():
            if node.type in self.workflow.definitions:
                scope = self.workflow.definitions[node.type]
                path = (*instance.path, node.id)
                hidden = self._hides(instance, node)
                instance.children[node.id] = self._instance(Instance(scope, path, instance, node, hidden))
            elif node.type == "PrimitiveNode":
                instance.primitives[node.id] = primitive_value(node)
            elif node.type in self.definitions:
                widgets, repair = load_widgets(node, self.definitions[node.type], self.strict)
                instance.widgets[node.id] = widgets
                if repair is not None:
                    self.report.warn(instance.execution_id(node.id), None, repair.rule, repair.detail)
        self._connect(instance)
        for node_id in instance.primitives:
            push_primitive(instance, node_id)
        if instance.host is not None:
            Promotion(self.workflow, self.definitions, self.strict).apply(instance, instance.host)
        return instance

    def _hides(self, instance: Instance, host: Node) -> bool:
        """ComfyUI's front end lets a muted instance inside another one run all the same."""
        is_off = host.mode in (MUTED, BYPASSED)
        return instance.hidden or (is_off and not (self.strict and bool(instance.path)))

    # --- links ------------------------------------------------------------------------------------------

    def _connect(self, instance: Instance) -> None:
        """Links by node and input name. A link that an input claims by id wins over one that only points."""
        claimed: set[tuple[str, str]] = set()
        for link in instance.scope.links.values():
            node = instance.scope.nodes.get(link.target)
            if node is None:
                continue
            owner = next((slot for slot in node.inputs if slot.link == link.id), None)
            name = owner.name if owner is not None else self._name_at(instance, node, link.target_slot)
            if name is None:
                detail = f"link {link.id} ends at no known input"
                self.report.warn(instance.execution_id(node.id), None, "slot", detail)
                continue
            inputs = instance.incoming.setdefault(node.id, {})
            if name not in inputs or (owner is not None and (node.id, name) not in claimed):
                inputs[name] = link
            if owner is not None:
                claimed.add((node.id, name))
        if not instance.path and not self.strict:
            self._connect_everywhere(instance)

    def _connect_everywhere(self, instance: Instance) -> None:
        for link in self.workflow.everywhere:
            node = instance.scope.nodes.get(link.target)
            name = None if node is None else self._name_at(instance, node, link.target_slot)
            if node is not None and name is not None and link.origin in instance.scope.nodes:
                instance.incoming.setdefault(node.id, {}).setdefault(name, link)

    def _name_at(self, instance: Instance, node: Node, index: int) -> str | None:
        if 0 <= index < len(node.inputs):
            return node.inputs[index].name
        return _at(self._declared_names(instance, node), index)

    def _declared_names(self, instance: Instance, node: Node) -> list[str]:
        if node.id in instance.children:
            return [port.name for port in instance.children[node.id].scope.inputs]
        definition = self.definitions.get(node.type, {})
        return [name for name, _ in node_slots(node, definition, instance.widgets.get(node.id, ()))]


def push_primitive(instance: Instance, node_id: str) -> None:
    """The value of a PrimitiveNode is copied into the widgets at the ends of its links."""
    value = instance.primitives[node_id]
    if value is NOTHING:
        return
    for target, name in instance.fed_by(node_id):
        widget = instance.widget(target, name)
        if widget is not None:
            widget.value = rounded(value, widget)


def _at(names: list[str], index: int) -> str | None:
    return names[index] if 0 <= index < len(names) else None
