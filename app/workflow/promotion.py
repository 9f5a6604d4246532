"""Values that stand at the host of a subgraph and belong to widgets inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.instance import Instance, rounded
from app.workflow.schema import SUBGRAPH_INPUT, Node, Port, Workflow
from app.workflow.slots import slot_named
from app.workflow.widgets import Definition, Widget


@dataclass(frozen=True, slots=True)
class Promotion:
    workflow: Workflow
    definitions: Mapping[str, Definition]
    strict: bool

    def apply(self, instance: Instance, host: Node) -> None:
        """Promoted inputs start with the inner value; then come the values that the host has saved."""
        for port in instance.scope.inputs:
            start = self._start(instance, port)
            if start is not None:
                instance.promoted[port.name] = start.value
        proxies = host.properties.get("proxyWidgets")
        if isinstance(proxies, list) and proxies and isinstance(host.values, list):
            self._apply_proxies(instance, proxies, host.values)
        else:
            self._apply_values(instance, host)

    def _apply_values(self, instance: Instance, host: Node) -> None:
        names = list(instance.promoted)
        if isinstance(host.values, dict):
            saved = host.values
        elif not self.strict and host.named_values and len(host.named_values) == len(host.values or ()):
            saved = dict(zip(host.named_values, host.values or (), strict=True))
        else:
            saved = dict(zip(names, host.values or (), strict=False))
        for name in names:
            if name in saved and (self.strict or saved[name] is not None):
                instance.promoted[name] = saved[name]

    # --- what a promoted input stands for -----------------------------------------------------------------

    def _start(self, instance: Instance, port: Port) -> Widget | None:
        """The widget that a subgraph input stands for: the one that its first link reaches, if any."""
        target = port_target(instance, port)
        if target is None:
            return None
        node_id, name = target
        child = instance.children.get(node_id)
        if child is not None:
            return Widget(name, child.promoted[name]) if name in child.promoted else None
        widget = instance.widget(node_id, name)
        if widget is None and not self.strict:
            return self._of_missing_type(instance.scope.nodes[node_id], name)
        return widget

    def _of_missing_type(self, node: Node, name: str) -> Widget | None:
        """A node that nobody defines still shows in the file which of its inputs are widgets."""
        slot = slot_named(node, name)
        is_widget = node.type not in self.definitions and slot is not None and slot.widget is not None
        return Widget(name, NOTHING, "*") if is_widget else None

    # --- proxies: [inner node, widget, inner node of a nested instance] ------------------------------------

    def _apply_proxies(self, instance: Instance, proxies: list[Any], values: list[Any]) -> None:
        own: dict[str, Any] = {}
        for proxy, value in zip(proxies, values, strict=False):
            if not isinstance(proxy, list) or len(proxy) < 2 or str(proxy[1]).startswith("$$"):
                continue
            if value is None and not self.strict:
                continue
            inner, name = self._current(instance, str(proxy[0])), _plain(str(proxy[1]))
            if str(proxy[0]) == "-1":
                own[name] = value
            elif inner in instance.children:
                source = str(proxy[2]) if len(proxy) > 2 and proxy[2] is not None else None
                self._set_nested(instance.children[inner], name, source, value)
                self._refresh(instance, inner)
            else:
                self._set_inner(instance, inner, name, value)
        instance.promoted |= own

    def _current(self, instance: Instance, node_id: str) -> str:
        return self.workflow.renumbered.get(instance.scope.id, {}).get(node_id, node_id)

    def _set_inner(self, instance: Instance, node_id: str, name: str, value: Any) -> None:
        node = instance.scope.nodes.get(node_id)
        if node is not None and node.type == "PrimitiveNode":
            instance.primitives[node_id] = value
            for target, target_name in instance.fed_by(node_id):
                widget = instance.widget(target, target_name)
                if widget is not None:
                    widget.value = rounded(value, widget)
                    self._refresh(instance, target)
            return
        widget = instance.widget(node_id, name)
        if widget is not None:
            widget.value = value
            self._refresh(instance, node_id)

    def _refresh(self, instance: Instance, node_id: str) -> None:
        """Inputs that stand for a widget of this node show its new value outside."""
        for port in instance.scope.inputs:
            target = port_target(instance, port)
            start = self._start(instance, port) if target is not None and target[0] == node_id else None
            if start is not None and port.name in instance.promoted:
                instance.promoted[port.name] = start.value

    def _set_nested(self, child: Instance, name: str, source: str | None, value: Any) -> bool:
        port = self._port(child, name, source)
        if port is not None:
            child.promoted[port] = value
            return True
        owner = self._owner(child, name, source)
        if owner is not None:
            self._set_inner(child, owner, name, value)
            return True
        for node_id, grandchild in child.children.items():
            if self._set_nested(grandchild, name, source, value):
                self._refresh(child, node_id)
                return True
        return False

    def _port(self, child: Instance, name: str, source: str | None) -> str | None:
        """The promoted input meant: by the widget it stands for where its node is named, else by name."""
        standing = list(promoted_widgets(child))
        if source is not None:
            for port, scope, node_id, widget in standing:
                if widget == name and node_id == self._current(scope, source):
                    return port
        if name in child.promoted:
            return name
        return next((port for port, _, _, widget in standing if widget == name), None)

    def _owner(self, child: Instance, name: str, source: str | None) -> str | None:
        owners = [node_id for node_id in child.widgets if child.widget(node_id, name) is not None]
        if source is None:
            return next(iter(owners), None)
        current = self._current(child, source)
        return current if current in owners or current in child.primitives else None


def port_target(instance: Instance, port: Port) -> tuple[str, str] | None:
    """Node and input at the end of the first link of a subgraph's input."""
    for link_id in port.links:
        link = instance.scope.links.get(link_id)
        if link is not None and link.origin == SUBGRAPH_INPUT:
            inputs = instance.incoming.get(link.target, {})
            name = next((name for name, arriving in inputs.items() if arriving is link), None)
            return None if name is None else (link.target, name)
    return None


def port_leaf(instance: Instance, port: Port) -> tuple[Instance, str, str] | None:
    """The scope, node and widget at the end, through all instances on the way."""
    target = port_target(instance, port)
    if target is None:
        return None
    node_id, name = target
    child = instance.children.get(node_id)
    if child is None:
        return instance, node_id, name
    inner = next((inner for inner in child.scope.inputs if inner.name == name), None)
    return None if inner is None else port_leaf(child, inner)


def promoted_widgets(instance: Instance) -> Iterator[tuple[str, Instance, str, str]]:
    """Each promoted input with the scope, node and widget that it stands for."""
    for port in instance.scope.inputs:
        leaf = port_leaf(instance, port) if port.name in instance.promoted else None
        if leaf is not None:
            yield port.name, *leaf


def _plain(name: str) -> str:
    """Older files put the inner id in front: "12: seed"."""
    number, colon, rest = name.partition(": ")
    return rest if colon and number.isdigit() else name
