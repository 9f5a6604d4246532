"""What `control_after_generate` makes of a value: the next of a list, or another number."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from app.workflow.defaults import choices
from app.workflow.instance import Instance
from app.workflow.promotion import promoted_widgets
from app.workflow.tree import push_primitive
from app.workflow.values import CONTROL_VALUES
from app.workflow.widgets import Widget

MOST = 2**50


def advance(root: Instance, rng: random.Random) -> None:
    """Moves on every controlled widget; one that a host promotes moves on at the host."""
    for instance in root.walk():
        for widgets in instance.widgets.values():
            for widget, control, filter_text in controlled(widgets):
                widget.value = next_value(widget, widget.value, control, filter_text, rng)
        for name, scope, node_id, inner in promoted_widgets(instance):
            for widget, control, filter_text in controlled(scope.widgets.get(node_id, ())):
                if widget.name == inner and name in instance.promoted:
                    value = instance.promoted[name]
                    instance.promoted[name] = next_value(widget, value, control, filter_text, rng)
        for node_id in instance.primitives:
            _advance_primitive(instance, node_id, rng)


def _advance_primitive(instance: Instance, node_id: str, rng: random.Random) -> None:
    """Its second value is the control; the first widget that it feeds gives the bounds."""
    values = instance.scope.nodes[node_id].values
    fed = (instance.widget(*target) for target in instance.fed_by(node_id))
    widget = next((widget for widget in fed if widget is not None), None)
    if widget is None or not isinstance(values, list) or len(values) < 2 or values[1] not in CONTROL_VALUES:
        return
    text = str(values[2]) if len(values) > 2 else ""
    value = instance.primitives[node_id]
    instance.primitives[node_id] = next_value(widget, value, values[1], text, rng)
    push_primitive(instance, node_id)


def controlled(widgets: Sequence[Widget]) -> Iterator[tuple[Widget, str, str]]:
    """Each widget that a control follows, with the mode and, for lists, the filter."""
    for index, control in enumerate(widgets):
        if control.type == "CONTROL" and index:
            after = widgets[index + 1 : index + 2]
            text = after[0].value if after and after[0].name == "control_filter_list" else ""
            yield widgets[index - 1], str(control.value), str(text or "")


def next_value(widget: Widget, value: Any, mode: str, filter_text: str, rng: random.Random) -> Any:
    if mode == "fixed":
        return value
    if widget.type == "COMBO":
        return _next_choice(widget, value, mode, filter_text, rng)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    low, high = _bound(widget, "min", 0), _bound(widget, "max", MOST)
    step = widget.options.get("step")
    step = step if isinstance(step, int | float) and step > 0 else 1
    if mode == "increment":
        return min(value + step, high)
    if mode == "decrement":
        return max(value - step, low)
    low, high = max(low, -MOST), min(high, MOST)
    return math.floor(rng.random() * (high - low) / step) * step + low


def _bound(widget: Widget, name: str, otherwise: int) -> Any:
    bound = widget.options.get(name)
    return bound if isinstance(bound, int | float) else otherwise


def _next_choice(widget: Widget, value: Any, mode: str, filter_text: str, rng: random.Random) -> Any:
    is_meant = _filter(filter_text)
    offered = [choice for choice in choices(widget.options) if is_meant(str(choice))]
    if not offered:
        return value
    if mode == "randomize":
        return rng.choice(offered)
    at = offered.index(value) if value in offered else -1
    at += -1 if mode == "decrement" else 1
    if mode == "increment-wrap":
        at %= len(offered)
    return offered[max(0, min(at, len(offered) - 1))]


def _filter(text: str) -> Callable[[str], bool]:
    """`/pattern/` is a regular expression; other text has to be in the choice, in any case of letters."""
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        with suppress(re.error):
            pattern = re.compile(text[1:-1])
            return lambda choice: bool(pattern.search(choice))
    return lambda choice: text.lower() in choice.lower()
