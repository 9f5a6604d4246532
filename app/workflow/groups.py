"""Group nodes of older files become subgraphs: the nodes of `extra.groupNodes[NAME]`, used by a type's name.

A group shows the unconnected inputs and the widgets of its inner nodes, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.workflow.schema import SUBGRAPH_INPUT, SUBGRAPH_OUTPUT, Node, read_node
from app.workflow.slots import node_slots
from app.workflow.tolerant import mapping, mappings, sequence
from app.workflow.values import load_widgets
from app.workflow.virtual import REROUTES
from app.workflow.widgets import Definition, Widget

Definitions = Mapping[str, Definition]
_PREFIXES = ("workflow>", "workflow/")
_SILENT = frozenset({"Note", "MarkdownNote"})


def with_groups_unpacked(document: Mapping[str, Any], definitions: Definitions) -> Mapping[str, Any]:
    """The document with a subgraph definition for each group that it uses; most use none."""
    groups = mapping(mapping(mapping(document).get("extra")).get("groupNodes"))
    if not groups or not isinstance(document.get("nodes"), list):
        return document
    unpacker = _Unpacker(groups, definitions)
    given = mappings(mapping(document.get("definitions")).get("subgraphs"))
    unpacked, subgraphs = unpacker.scope(document), [unpacker.scope(subgraph) for subgraph in given]
    made = [group.as_subgraph() for group in unpacker.made.values() if group is not None]
    return {**unpacked, "definitions": {"subgraphs": [*subgraphs, *made]}}


@dataclass(frozen=True, slots=True)
class _Port:
    """What a group shows of an inner node: a socket or a widget, under a name of its own."""

    name: str
    node: int
    inner: str
    type: str
    widget: Widget | None = None
    is_converted: bool = False


@dataclass(slots=True)
class _Group:
    type: str
    nodes: list[dict[str, Any]]
    ports: list[_Port] = field(default_factory=list)
    outputs: list[tuple[int, int, str]] = field(default_factory=list)  # node, slot, type
    links: list[tuple[int, int, int, str]] = field(default_factory=list)  # from node, slot, to node, input

    def saved(self, count: int) -> list[_Port]:
        """The widgets whose values an instance lists: those turned into inputs only if the count says so."""
        every = [port for port in self.ports if port.widget is not None]
        left = [port for port in every if not port.is_converted]
        return left if len(left) == count != len(every) else every

    def as_subgraph(self) -> dict[str, Any]:
        shown = [port for port in self.ports if port.widget is None or port.widget.sent]
        links: list[dict[str, Any]] = []
        for index, port in enumerate(shown):
            links.append(_link(len(links), SUBGRAPH_INPUT, index, str(port.node), port.inner))
        for source, slot, target, name in self.links:
            links.append(_link(len(links), str(source), slot, str(target), name))
        nodes = [_with_links(node, index, links) for index, node in enumerate(self.nodes)]
        for index, (source, slot, _) in enumerate(self.outputs):
            links.append({**_link(len(links), str(source), slot, SUBGRAPH_OUTPUT, ""), "target_slot": index})
        inputs = [
            {"name": port.name, "type": port.type, "linkIds": [index]} for index, port in enumerate(shown)
        ]
        outputs = [{"name": kind, "type": kind} for _, _, kind in self.outputs]
        return {
            "id": self.type,
            "name": self.type,
            "nodes": nodes,
            "links": links,
            "inputs": inputs,
            "outputs": outputs,
        }


@dataclass(slots=True)
class _Unpacker:
    groups: Mapping[str, Any]
    definitions: Definitions
    made: dict[str, _Group | None] = field(default_factory=dict)

    def scope(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        return {**raw, "nodes": [self._host(dict(node)) for node in mappings(raw.get("nodes"))]}

    def _host(self, raw: dict[str, Any]) -> dict[str, Any]:
        """An instance says by proxies which inner widget each of its values belongs to."""
        group = self._group(raw.get("type"))
        if group is None:
            return raw
        values = raw.get("widgets_values")
        values = list(values.values()) if isinstance(values, dict) else values
        properties = dict(mapping(raw.get("properties")))
        if isinstance(values, list):
            saved = group.saved(len(values))
            properties["proxyWidgets"] = [[str(port.node), port.inner] for port in saved]
        return {
            **raw,
            "inputs": _named_inputs(raw.get("inputs"), group.ports),
            "properties": properties,
            "widgets_values": values,
        }

    def _group(self, node_type: Any) -> _Group | None:
        name = next((node_type[len(p) :] for p in _PREFIXES if str(node_type).startswith(p)), None)
        raw = self.groups.get(name) if name is not None else None
        if not isinstance(raw, dict) or not isinstance(raw.get("nodes"), list):
            return None
        if node_type not in self.made:
            # found while it is being made, a group holds itself
            self.made[node_type] = None
            self.made[node_type] = self._unpacked(str(node_type), raw)
        return self.made[node_type]

    def _unpacked(self, node_type: str, raw: Mapping[str, Any]) -> _Group:
        nodes = [self._host(dict(mapping(node))) for node in raw["nodes"]]
        group = _Group(node_type, nodes)
        parsed = [read_node({**node, "id": index}) for index, node in enumerate(nodes)]
        shown = [self._shown(node) for node in parsed]
        for source, slot, target, target_slot in _inner_links(raw.get("links"), len(nodes)):
            name = _input_name(parsed[target], shown[target], target_slot)
            if name is not None:
                group.links.append((source, slot, target, name))
        taken = {(target, name) for _, _, target, name in group.links}
        names: set[str] = set()
        for node, ports in zip(parsed, shown, strict=True):
            hidden = _hidden(raw.get("config"), node.id)
            for port in ports:
                if (port.node, port.inner) not in taken and port.inner not in hidden:
                    group.ports.append(_renamed(port, node, names))
        group.ports.sort(key=lambda port: port.widget is not None)
        external = [entry[:2] for entry in _lists(raw.get("external"))]
        for node in parsed:
            for slot, kind in enumerate(self._output_types(node)):
                used = any(link[:2] == (int(node.id), slot) for link in group.links)
                if not used or [int(node.id), slot] in external:
                    group.outputs.append((int(node.id), slot, kind))
        return group

    def _shown(self, node: Node) -> list[_Port]:
        """All inputs of one inner node, sockets and widgets."""
        index = int(node.id)
        inner = self._group(node.type)
        if inner is not None:
            return [_Port(p.name, index, p.name, p.type, p.widget, p.is_converted) for p in inner.ports]
        definition = self.definitions.get(node.type)
        if definition is None:
            own = "type" if node.type in REROUTES else None
            return [_Port(own or slot.name, index, slot.name, slot.type) for slot in node.inputs]
        widgets = load_widgets(node, definition, strict=False)[0]
        named = {widget.name for widget in widgets}
        sockets = [
            _Port(name, index, name, kind)
            for name, kind in node_slots(node, definition, widgets)
            if name not in named
        ]
        converted = {slot.name for slot in node.inputs if slot.widget is not None}
        return sockets + [
            _Port(widget.name, index, widget.name, widget.type, widget, widget.name in converted)
            for widget in widgets
            if widget.saved
        ]

    def _output_types(self, node: Node) -> Sequence[str]:
        if node.type in _SILENT:
            return ()
        inner = self._group(node.type)
        if inner is not None:
            return [kind for _, _, kind in inner.outputs]
        declared = self.definitions.get(node.type, {}).get("output")
        if isinstance(declared, list):
            return [kind if isinstance(kind, str) else "COMBO" for kind in declared]
        return node.output_types


def _named_inputs(raw: Any, ports: Sequence[_Port]) -> list[Any]:
    """An instance's inputs under the group's names; a name that is not one stands for its place."""
    names = {port.name for port in ports}
    inputs = [dict(slot) for slot in mappings(raw)]
    for index, slot in enumerate(inputs):
        if slot.get("name") not in names and index < len(ports):
            slot["name"] = ports[index].name
    return inputs


def _renamed(port: _Port, node: Node, names: set[str]) -> _Port:
    """A name that is taken has the node's title in front, then a number."""
    wanted, number = port.name, 1
    while wanted in names:
        wanted = f"{node.title or node.type} {port.name}" + (f" {number}" if number > 1 else "")
        number += 1
    if port.widget is None or port.widget.sent:
        names.add(wanted)
    return _Port(wanted, port.node, port.inner, port.type, port.widget, port.is_converted)


def _hidden(config: Any, node_id: str) -> set[str]:
    """Inputs that the group's author took out of sight."""
    inputs = mapping(mapping(mapping(config).get(node_id)).get("input"))
    return {name for name, how in inputs.items() if mapping(how).get("visible") is False}


def _inner_links(raw: Any, count: int) -> Iterator[tuple[int, int, int, int]]:
    for entry in _lists(raw):
        ends = [end for end in entry[:4] if isinstance(end, int)]
        if len(ends) == 4 and 0 <= ends[0] < count and 0 <= ends[2] < count:
            yield ends[0], ends[1], ends[2], ends[3]


def _input_name(node: Node, shown: Sequence[_Port], index: int) -> str | None:
    if 0 <= index < len(node.inputs):
        return node.inputs[index].name
    return shown[index].inner if 0 <= index < len(shown) else None


def _link(number: int, origin: str, slot: int, target: str, name: str) -> dict[str, Any]:
    return {
        "id": number,
        "origin_id": origin,
        "origin_slot": slot,
        "target_id": target,
        "target_slot": -1,
        "name": name,
    }


def _with_links(raw: dict[str, Any], index: int, links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The node with the group's links at its inputs instead of those it had where it was made."""
    slots: list[dict[str, Any]] = [{**slot, "link": None} for slot in mappings(raw.get("inputs"))]
    for link in links:
        if link["target_id"] != str(index):
            continue
        slot = next((slot for slot in slots if slot.get("name") == link["name"]), None)
        if slot is None:
            slots.append({"name": link["name"], "type": "*", "link": link["id"]})
        else:
            slot["link"] = link["id"]
    return {**raw, "id": index, "inputs": slots}


def _lists(raw: Any) -> Iterator[list[Any]]:
    yield from (entry for entry in sequence(raw) if isinstance(entry, list))
