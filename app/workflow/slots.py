"""The connection points of a node, in the order in which links count them, and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.workflow.schema import InputSlot, Node
from app.workflow.tolerant import mapping, sequence
from app.workflow.widgets import Definition, InputEntry, Widget, autogrow_names, input_entries, is_socket

Slot = tuple[str, str]  # name, type


def node_slots(node: Node, definition: Definition, widgets: Sequence[Widget]) -> list[Slot]:
    """Sockets as declared, then widgets, then what only the file knows.

    Rows and children of a dynamic input stand where that input does.
    """
    sockets: list[Slot] = []
    converted: list[Slot] = []
    for entry in input_entries(definition):
        if is_socket(entry):
            sockets += _sockets_of(node, entry)
        else:
            converted += _converted_of(node, entry, widgets)
    known = {name for name, _ in sockets + converted}
    return sockets + converted + [(slot.name, slot.type) for slot in node.inputs if slot.name not in known]


def _sockets_of(node: Node, entry: InputEntry) -> Iterator[Slot]:
    name, kind, options, _ = entry
    if kind != "COMFY_AUTOGROW_V3":
        yield name, _kind(node, name, kind, options)
        return
    saved = [(slot.name, slot.type) for slot in node.inputs if slot.name.startswith(f"{name}.")]
    yield from saved or [(f"{name}.{row}", "*") for row in autogrow_names(options)]


def _converted_of(node: Node, entry: InputEntry, widgets: Sequence[Widget]) -> Iterator[Slot]:
    name, kind, options, _ = entry
    for widget in widgets:
        if widget.name == name and widget.sent and not options.get("socketless"):
            yield name, kind
        elif widget.name.startswith(f"{name}.") and widget.sent:
            yield widget.name, widget.type
    taken = {widget.name for widget in widgets}
    for slot in node.inputs:
        if slot.name.startswith(f"{name}.") and slot.name not in taken:
            yield slot.name, slot.type


def input_type(node: Node, definition: Definition, name: str) -> str:
    """The type that an input asks for; what a definition does not know has the type of the file."""
    for declared, kind, options, _ in input_entries(definition):
        if declared == name:
            return _kind(node, name, kind, options)
    slot = slot_named(node, name)
    return slot.type if slot is not None else "*"


def output_type(node: Node, definition: Definition, index: int) -> str:
    if 0 <= index < len(node.output_types):
        return node.output_types[index]
    declared = sequence(definition.get("output"))
    kind = declared[index] if 0 <= index < len(declared) else "*"
    if kind == "COMFY_MATCHTYPE_V3":
        return "*"
    return kind if isinstance(kind, str) else "COMBO"


def slot_named(node: Node, name: str) -> InputSlot | None:
    return next((slot for slot in node.inputs if slot.name == name), None)


def _kind(node: Node, name: str, kind: str, options: Mapping[str, Any]) -> str:
    """An input that takes the type of what is connected has it in the file."""
    if kind != "COMFY_MATCHTYPE_V3":
        return kind
    slot = slot_named(node, name)
    if slot is not None and slot.type != kind:
        return slot.type
    allowed = mapping(options.get("template")).get("allowed_types")
    return allowed if isinstance(allowed, str) else "*"
