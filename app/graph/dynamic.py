"""Dynamic inputs: flat names in a prompt (`images.image0`), dicts for the node (`images["image0"]`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodes.spec import CASES, GROWING, InputGroup, Slot


def live_slots(slots: Iterable[Slot], given: Mapping[str, Any]) -> tuple[Slot, ...]:
    """The inputs that a node has in this prompt; what came from a dynamic one follows it."""
    return tuple(live for slot in slots for live in _live(slot, given))


def _live(slot: Slot, given: Mapping[str, Any]) -> Iterator[Slot]:
    if slot.type == GROWING:
        yield replace(slot, group="optional")
        yield from _inside(slot, _grown(slot, given), given)
    elif slot.type == CASES:
        cases = {case["key"]: case["inputs"] for case in slot.options["options"]}
        yield replace(slot, choices=list(cases))
        chosen = given.get(slot.name)
        inputs = cases.get(chosen, {}) if isinstance(chosen, str) else {}
        yield from _inside(slot, _of_case(inputs), given)
    else:
        yield slot


Inner = Iterable[tuple[str, Any, InputGroup]]


def _grown(slot: Slot, given: Mapping[str, Any]) -> Inner:
    """The first `min` names are required, the others exist when the prompt has them."""
    template = slot.options["template"]
    names = template.get("names")
    if names is None:
        names = [f"{template['prefix']}{i}" for i in range(template["max"])]
    inner = template["input"]
    (entry,) = (inner.get("required") or inner["optional"]).values()
    is_required = bool(inner.get("required")) and slot.group == "required"
    for i, name in enumerate(names):
        if is_required and i < template.get("min", 0):
            yield name, entry, "required"
        elif f"{slot.name}.{name}" in given:
            yield name, entry, "optional"


def _of_case(inputs: Mapping[str, Mapping[str, Any]]) -> Inner:
    for name, entry in inputs.get("required", {}).items():
        yield name, entry, "required"
    for name, entry in inputs.get("optional", {}).items():
        yield name, entry, "optional"


def _inside(slot: Slot, inner: Inner, given: Mapping[str, Any]) -> Iterator[Slot]:
    for name, entry, group in inner:
        yield from _live(Slot.of(f"{slot.name}.{name}", entry, group, within=slot.name), given)


def nested(slots: Iterable[Slot], flat: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the node's function takes them; an input that grew by nothing is an empty dict."""
    known = tuple(slots)
    inputs = dict(flat)
    for slot in known:
        if slot.type == GROWING:
            inputs[slot.name] = {}
        elif slot.type == CASES and slot.name in inputs:
            inputs[slot.name] = {_last(slot.name): inputs[slot.name]}
    # inner ones first, and each dict in the order of the inputs
    for slot in sorted(known, key=lambda slot: -slot.name.count(".")):
        if slot.within is not None and slot.name in inputs and slot.within in inputs:
            inputs[slot.within][_last(slot.name)] = inputs.pop(slot.name)
    return inputs


def _last(name: str) -> str:
    return name.rpartition(".")[2]
