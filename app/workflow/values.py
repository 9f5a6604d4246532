"""Which saved value belongs to which widget, also where the list was written for another node version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.workflow.schema import Node
from app.workflow.widgets import (
    Definition,
    Widget,
    build_widgets,
    control_widget,
    input_entries,
    is_forced,
    is_socket,
    saved_count,
)

CONTROL_VALUES = ("fixed", "increment", "decrement", "randomize")


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to make the values fit, as a sentence for the report."""

    rule: str
    detail: str


def load_widgets(node: Node, definition: Definition, strict: bool) -> tuple[list[Widget], Repair | None]:
    """`strict` reads positions as ComfyUI's front end does; else a list that does not fit is repaired."""
    values, repair = positional_values(node, definition), None
    if not strict:
        values, repair = _repair(node, definition, values)
    return build_widgets(node.type, definition, values), repair


def positional_values(node: Node, definition: Definition) -> list[Any] | None:
    """The saved values as a list, without those of inputs that are sockets now."""
    values = node.values
    if isinstance(values, dict):
        if len(values) == saved_count(node.type, definition):
            return list(values.values())
        return _by_name(node, definition, values)
    if values is None:
        return None
    return _without_forced(node, definition, values)


def _by_name(node: Node, definition: Definition, named: dict[str, Any]) -> list[Any]:
    widgets = build_widgets(node.type, definition, None)
    return [named.get(widget.name, widget.value) for widget in widgets if widget.saved]


def _without_forced(node: Node, definition: Definition, values: list[Any]) -> list[Any]:
    """Files from before forced inputs lost their widgets still list a value for each of them."""
    keep: list[bool] = []
    for entry in input_entries(definition):
        if is_forced(entry):
            keep.append(False)
        elif not is_socket(entry):
            name, kind, options, required = entry
            single = {"input": {"required" if required else "optional": {name: [kind, options]}}}
            keep += [True] * saved_count(node.type, single)
    has_forced = not all(keep)
    if has_forced and len(values) == len(keep):
        return [value for value, kept in zip(values, keep, strict=True) if kept]
    return values


def _repair(
    node: Node, definition: Definition, values: list[Any] | None
) -> tuple[list[Any] | None, Repair | None]:
    named = node.named_values
    if values is None:
        if named:
            return _by_name(node, definition, named), Repair("named", "values were taken by name")
        return None, None
    if _fits(node, definition, values):
        return values, None
    if named and len(named) == len(values):
        by_key = dict(zip(named, values, strict=True))
        candidate = _by_name(node, definition, by_key)
        if _fits(node, definition, candidate):
            return candidate, Repair("named", "values were taken in the order of the saved names")
    for candidate, detail in _shifts(node, definition, values):
        if _fits(node, definition, candidate):
            return candidate, Repair("shifted", detail)
    return values, Repair("unfitting", f"{len(values)} saved values do not fit the node's widgets")


def _shifts(node: Node, definition: Definition, values: list[Any]) -> Iterator[tuple[list[Any], str]]:
    """The known ways in which old files differ."""
    widgets = [widget for widget in build_widgets(node.type, definition, values) if widget.saved]
    for position, widget in enumerate(widgets):
        if widget.type == "CONTROL":
            added = [*values[:position], control_widget("INT", "fixed").value, *values[position:]]
            yield added, "a missing control_after_generate was put in"
    for position, value in enumerate(values):
        if value in CONTROL_VALUES:
            yield values[:position] + values[position + 1 :], "a surplus control_after_generate was left out"
    for position, widget in enumerate(widgets):
        if widget.name == "upload":
            yield [*values[:position], "image", *values[position:]], "a missing upload button was put in"


def _fits(node: Node, definition: Definition, values: list[Any]) -> bool:
    widgets = [widget for widget in build_widgets(node.type, definition, values) if widget.saved]
    return len(values) <= len(widgets) and all(
        _plausible(widget, value) for widget, value in zip(widgets, values, strict=False)
    )


def _plausible(widget: Widget, value: Any) -> bool:
    if value is None:
        return True
    if widget.type in ("INT", "FLOAT"):
        return isinstance(value, int | float) or (isinstance(value, str) and _is_number(value))
    if widget.type == "BOOLEAN":
        return isinstance(value, bool | int)
    if widget.type == "CONTROL":
        return isinstance(value, bool) or value in CONTROL_VALUES
    if widget.type == "COMBO":
        return not isinstance(value, int | float) or value in (widget.options.get("options") or ())
    if widget.type == "STRING":
        return not isinstance(value, bool | dict)
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
