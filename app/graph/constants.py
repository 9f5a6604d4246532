"""One literal of a prompt: what it becomes, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.graph.complaints import (
    Complaint,
    custom_validation_failed,
    invalid_input_type,
    value_bigger_than_max,
    value_not_in_list,
    value_smaller_than_min,
)
from nodes.spec import Library, Slot

_COERCIONS: Mapping[str, Callable[[Any], Any]] = {"INT": int, "FLOAT": float, "STRING": str, "BOOLEAN": bool}


def coerced(slot: Slot, value: Any) -> Any | Complaint:
    coerce = _COERCIONS.get(slot.type) if slot.choices is None else None
    if coerce is None:
        return value
    try:
        return coerce(value)
    except (ValueError, TypeError, OverflowError) as error:
        return invalid_input_type(slot, value, error)


def complaint_about(slot: Slot, value: Any, library: Library) -> Complaint | None:
    """The range and choice checks that a node may also do itself."""
    if slot.choices is not None:
        return _choice_complaint(slot, value, library)
    if isinstance(value, int | float):
        if "min" in slot.options and value < slot.options["min"]:
            return value_smaller_than_min(slot, value)
        if "max" in slot.options and value > slot.options["max"]:
            return value_bigger_than_max(slot, value)
    return None


def _choice_complaint(slot: Slot, value: Any, library: Library) -> Complaint | None:
    assert slot.choices is not None
    many = bool(slot.options.get("multiselect") or slot.options.get("multi_select"))
    chosen = value if many and isinstance(value, list) else [value]
    unknown = [one for one in chosen if one not in slot.choices]
    if not unknown or slot.options.get("remote"):
        return None
    if slot.folder == "input":
        if isinstance(value, str) and library.stamp("input", value) is not None:
            return None
        return custom_validation_failed(slot.name, f"Invalid {_media(slot)} file: {value}")
    return value_not_in_list(slot, unknown[0], slot.choices)


def _media(slot: Slot) -> str:
    uploads = (key.removesuffix("_upload") for key in slot.options if key.endswith("_upload"))
    return next(uploads, "input")
