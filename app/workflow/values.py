"""Which saved value belongs to which widget, also where the list was written for another node version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.workflow.defaults import NOTHING, choices
from app.workflow.schema import Node
from app.workflow.widgets import (
    Definition,
    Saved,
    Widget,
    build_widgets,
    control_widget,
    input_entries,
    is_forced,
    is_socket,
)

CONTROL_VALUES = ("fixed", "increment", "increment-wrap", "decrement", "randomize")


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to make the values fit, as a sentence for the report."""

    rule: str
    detail: str


def load_widgets(node: Node, definition: Definition, strict: bool) -> tuple[list[Widget], Repair | None]:
    """`strict` reads positions as ComfyUI's front end does; else values that do not fit are repaired."""
    if strict:
        return build_widgets(node.type, definition, _as_saved(node, definition)), None
    values, repair = _repaired(node, definition)
    return build_widgets(node.type, definition, values), repair


def _as_saved(node: Node, definition: Definition) -> Saved:
    values = node.values
    if isinstance(values, dict):
        listed = list(values.values())
        return listed if len(saved_names(node.type, definition, listed)) == len(values) else values
    return None if values is None else _without_forced(definition, values)


def saved_names(node_type: str, definition: Definition, values: Saved) -> list[str]:
    return [widget.name for widget in build_widgets(node_type, definition, values) if widget.saved]


def _without_forced(definition: Definition, values: list[Any]) -> list[Any]:
    """Files from before forced inputs lost their widgets still list a value for each of them."""
    keep: list[bool] = []
    for entry in input_entries(definition):
        if is_forced(entry):
            keep.append(False)
        elif not is_socket(entry):
            name, kind, options, required = entry
            single = {"input": {"required" if required else "optional": {name: [kind, options]}}}
            keep += [True] * len(saved_names("", single, None))
    has_forced = not all(keep)
    if has_forced and len(values) == len(keep):
        return [value for value, kept in zip(values, keep, strict=True) if kept]
    return values


def _repaired(node: Node, definition: Definition) -> tuple[Saved, Repair | None]:
    values, named = node.values, node.named_values
    if isinstance(values, dict):
        known = set(saved_names(node.type, definition, values))
        return (values, None) if known & set(values) else (_as_saved(node, definition), None)
    if not values:
        return (named, Repair("named", "values were taken by name")) if named else (values, None)
    values = _without_forced(definition, values)
    if named and len(named) == len(values):
        by_name = dict(zip(named, values, strict=True))
        if _is_better(node, definition, by_name):
            detail = "values were taken in the order of the saved names"
            return by_name, Repair("named", detail) if _differ(node, definition, values, by_name) else None
    if _fits(node, definition, values):
        return values, None
    for candidate, detail in _shifts(node, definition, values):
        if _fits(node, definition, candidate):
            return candidate, Repair("shifted", detail)
    return values, Repair("unfitting", f"{len(values)} saved values do not fit the node's widgets")


def _is_better(node: Node, definition: Definition, by_name: dict[str, Any]) -> bool:
    """Whether the saved names are another list than our widgets', or the same in another order."""
    widgets = [widget for widget in build_widgets(node.type, definition, by_name) if widget.saved]
    ours = [widget.name for widget in widgets]
    moved = len(ours) != len(by_name) or set(ours) == set(by_name)
    return moved and ours != list(by_name) and all(_plausible(widget, widget.value) for widget in widgets)


def _differ(node: Node, definition: Definition, *sources: Saved) -> bool:
    first, second = (
        [
            (widget.name, widget.value)
            for widget in build_widgets(node.type, definition, source)
            if widget.sent
        ]
        for source in sources
    )
    return first != second


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
        if widget.type == "BUTTON":
            yield (
                [*values[:position], widget.options["rests"], *values[position:]],
                "a missing upload button was put in",
            )


def _fits(node: Node, definition: Definition, values: list[Any]) -> bool:
    widgets = [widget for widget in build_widgets(node.type, definition, values) if widget.saved]
    return len(values) <= len(widgets) and all(
        _plausible(widget, value) for widget, value in zip(widgets, values, strict=False)
    )


def _plausible(widget: Widget, value: Any) -> bool:
    if value is None or value is NOTHING:
        return True
    if widget.type == "BUTTON":
        return bool(value == widget.options.get("rests"))
    if widget.type in ("INT", "FLOAT"):
        return isinstance(value, int | float) or (isinstance(value, str) and _is_number(value))
    if widget.type == "BOOLEAN":
        return isinstance(value, bool | int)
    if widget.type == "CONTROL":
        return isinstance(value, bool) or value in CONTROL_VALUES
    if widget.type == "COMBO":
        return not isinstance(value, int | float) or value in choices(widget.options)
    if widget.type == "STRING":
        return not isinstance(value, bool | dict)
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
