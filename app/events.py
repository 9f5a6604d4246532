"""What happens to prompts, as data. The graph publishes these; wire.py alone knows their look on a socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class NodeName:
    """`node_id` is where the work happens; `display_id` the box on the canvas that should show it."""

    node_id: str
    display_id: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobEvent:
    """`client_id` is the owner's; None means that nobody asked to be told."""

    prompt_id: str
    client_id: str | None


@dataclass(frozen=True, slots=True)
class ExecutionStart(JobEvent):
    pass


@dataclass(frozen=True, slots=True)
class ExecutionCached(JobEvent):
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeStarted(JobEvent):
    node: NodeName


@dataclass(frozen=True, slots=True)
class NodeProgress(JobEvent):
    """Coalesces: a later one replaces an unsent earlier one of the same node."""

    node: NodeName
    value: float
    maximum: float


@dataclass(frozen=True, slots=True)
class NodePreview(JobEvent):
    """Coalesces. `image` is an encoded JPEG or PNG."""

    node: NodeName
    image: bytes
    image_type: Literal["image/jpeg", "image/png"]


@dataclass(frozen=True, slots=True)
class NodeText(JobEvent):
    """Coalesces: `text` is all of the text so far, so a lost frame loses nothing."""

    node: NodeName
    text: str


@dataclass(frozen=True, slots=True)
class NodeFinished(JobEvent):
    """`ui` is what an output node shows, or None."""

    node: NodeName
    ui: Mapping[str, Any] | None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ExecutionError(JobEvent):
    node_id: str
    node_type: str
    executed: tuple[str, ...]
    exception_message: str
    exception_type: str
    traceback: tuple[str, ...]
    current_inputs: Mapping[str, Sequence[Any]]
    current_outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionInterrupted(JobEvent):
    node_id: str
    node_type: str
    executed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionSuccess(JobEvent):
    pass


@dataclass(frozen=True, slots=True)
class ExecutionEnd(JobEvent):
    """The last word on a prompt; its history row is already readable."""


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """For every client. `remaining` counts waiting and running prompts."""

    remaining: int


@dataclass(frozen=True, slots=True)
class PackMessage:
    """What a pack tells its scripts in the browser: a named message, or a finished binary frame.

    `client_id` None means every client.
    """

    client_id: str | None
    kind: str
    data: Any
    frame: bytes | None = None


Event = JobEvent | QueueChanged | PackMessage
