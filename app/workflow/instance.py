"""One scope of a workflow at one place of the tree of subgraphs, with its own widgets and values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.schema import Link, Node, Scope
from app.workflow.widgets import Widget


@dataclass(slots=True)
class Instance:
    """`path`: the ids of its hosts, outermost first. `incoming`: links by node and input name.

    `promoted`: values by the names of the subgraph's inputs. `primitives`: values of PrimitiveNodes by id.
    """

    scope: Scope
    path: tuple[str, ...] = ()
    parent: Instance | None = None
    host: Node | None = None
    hidden: bool = False
    widgets: dict[str, list[Widget]] = field(default_factory=dict)
    children: dict[str, Instance] = field(default_factory=dict)
    promoted: dict[str, Any] = field(default_factory=dict)
    primitives: dict[str, Any] = field(default_factory=dict)
    incoming: dict[str, dict[str, Link]] = field(default_factory=dict)

    def execution_id(self, node_id: str) -> str:
        return ":".join((*self.path, node_id))

    def widget(self, node_id: str, name: str) -> Widget | None:
        return next((w for w in self.widgets.get(node_id, ()) if w.name == name), None)

    def walk(self) -> Iterator[Instance]:
        yield self
        for child in self.children.values():
            yield from child.walk()

    def fed_by(self, origin: str) -> Iterator[tuple[str, str]]:
        """The inputs at the ends of a node's links."""
        for node_id, inputs in self.incoming.items():
            for name, link in inputs.items():
                if link.origin == origin:
                    yield node_id, name


def primitive_value(node: Node) -> Any:
    """The first saved value of a PrimitiveNode, or NOTHING."""
    values = list(node.values.values()) if isinstance(node.values, dict) else node.values
    return values[0] if values else NOTHING


def rounded(value: Any, widget: Widget) -> Any:
    """A number as a widget with a step would take it; steps count from the remainder of the minimum."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    if widget.type == "INT":
        step = _whole(widget.options.get("step")) or 1
        offset = _whole(widget.options.get("min")) % step
        # whole numbers stay exact: seeds are larger than what a float can tell apart
        steps = (2 * (value - offset) + step) // (2 * step)
        return int(steps) * step + offset
    precision = widget.options.get("round")
    if widget.type == "FLOAT" and isinstance(precision, int | float) and precision > 0:
        digits = max(0, len(f"{precision:.10f}".rstrip("0").partition(".")[2]))
        return round(math.floor(value / precision + 0.5) * precision, digits)
    return value


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0
