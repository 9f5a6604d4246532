"""The tree of subgraph instances with each node's own widgets: one definition used twice has two sets.

Values flow outside in: an instance's saved values replace those of the inner widgets that it promotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.workflow.report import Report
from app.workflow.schema import BYPASSED, MUTED, SUBGRAPH_INPUT, InputSlot, Link, Node, Port, Scope, Workflow
from app.workflow.values import load_widgets
from app.workflow.widgets import NOTHING, Widget, input_entries

Definitions = Mapping[str, Mapping[str, Any]]
FRONTEND_ONLY = frozenset({"Note", "MarkdownNote", "Reroute", "PrimitiveNode"})
MAX_DEPTH = 32


@dataclass(slots=True)
class Instance:
    """One scope at one place: `path` are the ids of its hosts, outermost first."""

    scope: Scope
    path: tuple[str, ...] = ()
    parent: Instance | None = None
    host: Node | None = None
    hidden: bool = False
    widgets: dict[str, list[Widget]] = field(default_factory=dict)
    children: dict[str, Instance] = field(default_factory=dict)
    promoted: dict[str, Any] = field(default_factory=dict)
    incoming: dict[tuple[str, str], Link] = field(default_factory=dict)

    def execution_id(self, node_id: str) -> str:
        return ":".join((*self.path, node_id))

    def widget(self, node_id: str, name: str) -> Widget | None:
        return next((w for w in self.widgets.get(node_id, ()) if w.name == name), None)

    def walk(self) -> Iterator[Instance]:
        yield self
        for child in self.children.values():
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds the tree of one workflow. `strict` follows ComfyUI's front end where we would do better."""

    workflow: Workflow
    definitions: Definitions
    strict: bool
    report: Report

    def build(self) -> Instance:
        return self._instance(Instance(self.workflow.root))

    def _instance(self, instance: Instance) -> Instance:
        if len(instance.path) > MAX_DEPTH:
            raise ValueError(f"subgraph '{instance.scope.name}' contains itself")
        for node in instance.scope.nodes.values():
            if node.type in self.workflow.definitions:
                scope = self.workflow.definitions[node.type]
                off = node.mode in (MUTED, BYPASSED)
                nested = bool(instance.path)
                hidden = instance.hidden or (off and not (nested and self.strict))
                path = (*instance.path, node.id)
                instance.children[node.id] = self._instance(Instance(scope, path, instance, node, hidden))
            elif node.type in self.definitions:
                widgets, repair = load_widgets(node, self.definitions[node.type], self.strict)
                instance.widgets[node.id] = widgets
                if repair is not None:
                    self.report.warn(instance.execution_id(node.id), None, repair.rule, repair.detail)
        instance.incoming = self._incoming(instance)
        self._push_primitives(instance)
        if instance.host is not None:
            self._promote(instance, instance.host)
        return instance

    # --- links ------------------------------------------------------------------------------------------

    def _incoming(self, instance: Instance) -> dict[tuple[str, str], Link]:
        """Links by (node, input name). A link that an input claims by id wins over one that only points."""
        found: dict[tuple[str, str], Link] = {}
        claimed: set[tuple[str, str]] = set()
        for link in instance.scope.links.values():
            node = instance.scope.nodes.get(link.target)
            if node is None:
                continue
            owner = next((slot for slot in node.inputs if slot.link == link.id), None)
            name = owner.name if owner is not None else self._name_at(node, link.target_slot)
            if name is None:
                self.report.warn(
                    instance.execution_id(node.id), None, "slot", f"link {link.id} ends at no known input"
                )
                continue
            key = (node.id, name)
            if key not in found or (owner is not None and key not in claimed):
                found[key] = link
            if owner is not None:
                claimed.add(key)
        return found

    def _name_at(self, node: Node, index: int) -> str | None:
        if 0 <= index < len(node.inputs):
            return node.inputs[index].name
        declared = [entry[0] for entry in input_entries(self.definitions.get(node.type, {}))]
        return declared[index] if 0 <= index < len(declared) else None

    # --- values -----------------------------------------------------------------------------------------

    def _push_primitives(self, instance: Instance) -> None:
        for link in instance.scope.links.values():
            origin = instance.scope.nodes.get(link.origin)
            if origin is None or origin.type != "PrimitiveNode":
                continue
            value = primitive_value(origin)
            if value is NOTHING:
                continue
            for (node_id, name), arriving in instance.incoming.items():
                widget = instance.widget(node_id, name) if arriving.id == link.id else None
                if widget is not None:
                    widget.value = rounded(value, widget)

    def _promote(self, instance: Instance, host: Node) -> None:
        names: list[str] = []
        for port in instance.scope.inputs:
            start = self._start_value(instance, port)
            if start is not None:
                instance.promoted[port.name] = start.value
                names.append(port.name)
        proxies = host.properties.get("proxyWidgets")
        values = host.values if isinstance(host.values, list) else []
        if isinstance(host.values, dict):
            instance.promoted |= {name: host.values[name] for name in names if name in host.values}
        elif isinstance(proxies, list) and proxies:
            self._apply_proxies(instance, proxies, values)
        else:
            instance.promoted |= dict(zip(names, values, strict=False))

    def _start_value(self, instance: Instance, port: Port) -> Widget | None:
        """The widget that a subgraph input stands for: the one that its first link reaches, if any."""
        for link_id in port.links:
            link = instance.scope.links.get(link_id)
            if link is None or link.origin != SUBGRAPH_INPUT:
                continue
            name = next((n for (_, n), arriving in instance.incoming.items() if arriving is link), None)
            if name is None:
                return None
            child = instance.children.get(link.target)
            if child is not None:
                return Widget(name, child.promoted[name]) if name in child.promoted else None
            return instance.widget(link.target, name)
        return None

    def _apply_proxies(self, instance: Instance, proxies: list[Any], values: list[Any]) -> None:
        for proxy, value in zip(proxies, values, strict=False):
            if not isinstance(proxy, list) or len(proxy) < 2:
                continue
            renumbered = self.workflow.renumbered.get(instance.scope.id, {})
            inner, name = str(proxy[0]), str(proxy[1])
            inner = renumbered.get(inner, inner)
            if name.startswith("$$"):
                continue
            name = name.partition(": ")[2] if name.partition(": ")[0].isdigit() else name
            if inner == "-1":
                instance.promoted[name] = value
            elif inner in instance.children:
                self._set_nested(instance.children[inner], name, proxy[2:3], value)
            else:
                self._set_inner(instance, inner, name, value)

    def _set_inner(self, instance: Instance, node_id: str, name: str, value: Any) -> None:
        node = instance.scope.nodes.get(node_id)
        if node is not None and node.type == "PrimitiveNode":
            targets = [key for key, link in instance.incoming.items() if link.origin == node_id]
            widgets = [instance.widget(*key) for key in targets]
        else:
            widgets = [instance.widget(node_id, name)]
        for widget in widgets:
            if widget is not None:
                widget.value = value
        self._refresh_promoted(instance)

    def _set_nested(self, child: Instance, name: str, source: list[Any], value: Any) -> None:
        if name in child.promoted:
            child.promoted[name] = value
            return
        for port in child.scope.inputs:
            widget = self._start_value(child, port)
            if port.name in child.promoted and widget is not None and widget.name == name:
                child.promoted[port.name] = value
                return
        owners = [str(source[0])] if source else [node for node in child.widgets if child.widget(node, name)]
        for owner in owners[:1]:
            self._set_inner(child, owner, name, value)

    def _refresh_promoted(self, instance: Instance) -> None:
        """An inner widget that is promoted as well shows its new value outside."""
        for port in instance.scope.inputs:
            widget = self._start_value(instance, port)
            if widget is not None and port.name in instance.promoted:
                instance.promoted[port.name] = widget.value


def primitive_value(node: Node) -> Any:
    """The first saved value of a PrimitiveNode, or NOTHING."""
    values = list(node.values.values()) if isinstance(node.values, dict) else node.values
    return values[0] if values else NOTHING


def rounded(value: Any, widget: Widget) -> Any:
    """A number as a widget with a step would take it; steps count from the remainder of the minimum."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if widget.type == "INT":
        step = int(widget.options.get("step") or 1)
        offset = int(widget.options.get("min") or 0) % step
        return int((value - offset + step / 2) // step) * step + offset
    precision = widget.options.get("round")
    if widget.type == "FLOAT" and isinstance(precision, int | float) and precision:
        digits = max(0, len(f"{precision:.10f}".rstrip("0").partition(".")[2]))
        return round(round(value / precision) * precision, digits)
    return value


def slot_named(node: Node, name: str) -> InputSlot | None:
    return next((slot for slot in node.inputs if slot.name == name), None)
