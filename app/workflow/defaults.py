"""What a fresh widget holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.workflow.tolerant import sequence

NOTHING: Any = object()  # the value of a widget that sends nothing

_EMPTY_VIDEO_EDIT = {
    "trim": {"start_time": 0, "duration": 0},
    "crop": {"x": 0, "y": 0, "width": 0, "height": 0},
}
_DEFAULTS: dict[str, Callable[[], Any]] = {
    "INT": lambda: 0,
    "FLOAT": lambda: 0,
    "BOOLEAN": lambda: False,
    "BOUNDING_BOX": lambda: {"x": 0, "y": 0, "width": 512, "height": 512},
    "BOUNDING_BOXES": list,
    "CURVE": lambda: {"points": [[0, 0], [1, 1]], "interpolation": "linear"},
    "RANGE": lambda: {"min": 0, "max": 1},
    "COMPOSITOR": dict,
    "CHART": dict,
    "COLOR": lambda: "#000000",
    "COLORS": list,
    "GALLERIA": list,
    "LIGHT_INFO_PREVIEW": list,
    "VIDEO_EDIT": lambda: {part: dict(fields) for part, fields in _EMPTY_VIDEO_EDIT.items()},
    "PAINTER": lambda: NOTHING,
}


def default_value(kind: str, options: Mapping[str, Any]) -> Any:
    default = options.get("default")
    if kind == "COMBO":
        return _chosen(options, default)
    return default if default is not None else _DEFAULTS.get(kind, str)()


def _chosen(options: Mapping[str, Any], default: Any) -> Any:
    if is_multiple(options):
        return default if default is not None else []
    if default is not None:
        return default
    if options.get("remote"):
        return "Loading..."
    return next(iter(choices(options)), NOTHING)


def is_multiple(options: Mapping[str, Any]) -> bool:
    """Whether several choices can be made at once."""
    return options.get("multi_select") not in (None, False)


def choices(options: Mapping[str, Any]) -> Sequence[Any]:
    return sequence(options.get("options"))
