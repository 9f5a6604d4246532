"""Values as boxes, for other nodes to share, and the choice between two inputs."""

from __future__ import annotations

from typing import Annotated, Any

from nodes.declare import node
from nodes.types import Anything, Float, Int, Lazy, Options, Socket, Text

CATEGORY = "utilities/primitive"
LARGEST = 2**63 - 1

Matched = Annotated[
    Any,
    Socket("COMFY_MATCHTYPE_V3"),
    Options({"template": {"template_id": "switch", "allowed_types": "*"}}),
]


@node("PrimitiveString", display="Text", category=CATEGORY)
def string(*, value: str) -> str:
    """One line of text, for several nodes to share."""
    return value


@node("PrimitiveStringMultiline", display="Text (Multiline)", category=CATEGORY)
def multiline_string(*, value: Text) -> str:
    """A text, for several nodes to share."""
    return value


@node("PrimitiveInt", display="Int", category=CATEGORY)
def integer(
    *, value: Annotated[int, Int(-LARGEST, LARGEST), Options({"control_after_generate": "fixed"})]
) -> int:
    """A whole number, for several nodes to share."""
    return value


@node("PrimitiveFloat", display="Float", category=CATEGORY)
def number(*, value: Annotated[float, Float(-LARGEST, LARGEST, 0.1)]) -> float:
    """A number, for several nodes to share."""
    return value


@node("PrimitiveBoolean", display="Boolean", category=CATEGORY)
def boolean(*, value: bool) -> bool:
    """Yes or no, for several nodes to share."""
    return value


@node("ComfyNotNode", display="Not", category="utilities/logic")
def negated(*, value: Anything) -> bool:
    """True for what Python counts as false: 0, an empty text, an empty list, nothing."""
    return not value


def _chosen(switch: bool | None = None) -> list[str]:
    return ["on_true" if switch else "on_false"]


@node(
    "ComfySwitchNode",
    display="If/Else Switch",
    category="utilities/logic",
    outputs=("output",),
    experimental=True,
    lazy_needs=_chosen,
)
def switch(
    *,
    switch: bool,
    on_false: Annotated[Matched, Lazy()] = None,
    on_true: Annotated[Matched, Lazy()] = None,
) -> Matched:
    """Passes one of its two inputs on; the other is not even computed."""
    return on_true if switch else on_false
