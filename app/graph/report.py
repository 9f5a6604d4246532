"""What a running job says: events to the bus, and the same facts gathered for its history row."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.events import (
    Event,
    ExecutionCached,
    ExecutionError,
    ExecutionInterrupted,
    ExecutionStart,
    ExecutionSuccess,
    NodeFinished,
    NodeName,
    NodeStarted,
)
from app.graph.complaints import type_name
from app.graph.parse import Node
from app.graph.values import Entry
from nodes.spec import Blocker

MAX_SHOWN = 2000

Status = Literal["success", "error", "interrupted"]
Message = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended. `outputs` and `meta` by node id, `messages` in the form that history keeps."""

    status: Status
    outputs: Mapping[str, Mapping[str, Any]]
    meta: Mapping[str, Mapping[str, Any]]
    messages: Sequence[Message]

    def history_status(self) -> dict[str, Any]:
        return {
            "status_str": "success" if self.status == "success" else "error",
            "completed": self.status == "success",
            "messages": [[name, dict(data)] for name, data in self.messages],
        }


class Report:
    def __init__(self, prompt_id: str, client_id: str | None, publish: Callable[[Event], None]) -> None:
        self.prompt_id = prompt_id
        self.client_id = client_id
        self._publish = publish
        self._outputs: dict[str, Mapping[str, Any]] = {}
        self._meta: dict[str, Mapping[str, Any]] = {}
        self._messages: list[Message] = []
        self._status: Status | None = None

    def started(self) -> None:
        self._remember("execution_start")
        self._publish(ExecutionStart(self.prompt_id, self.client_id))

    def cached(self, ids: Sequence[str]) -> None:
        self._remember("execution_cached", nodes=list(ids))
        self._publish(ExecutionCached(self.prompt_id, self.client_id, tuple(ids)))

    def node_started(self, node: Node) -> None:
        self._publish(NodeStarted(self.prompt_id, self.client_id, name_of(node)))

    def node_finished(self, node: Node, entry: Entry, cached: bool = False) -> None:
        if entry.ui:
            self._outputs[node.id] = entry.ui
            self._meta[node.id] = {
                "node_id": node.id,
                "display_node": node.display_id,
                "parent_node": node.parent_id,
                "real_node_id": node.real_id,
            }
        self._publish(NodeFinished(self.prompt_id, self.client_id, name_of(node), entry.ui, cached))

    def node_blocked(self, node: Node, blocker: Blocker, executed: Sequence[str]) -> None:
        """Told to the client and not to history: the job goes on and may well succeed."""
        self._publish(
            ExecutionError(
                self.prompt_id,
                self.client_id,
                node.real_id,
                node.spec.id,
                tuple(executed),
                f"Execution Blocked: {blocker.message}",
                "ExecutionBlocked",
                (),
                {},
                (),
            )
        )

    def failed(
        self,
        node: Node,
        error: BaseException,
        inputs: Mapping[str, Sequence[Any]],
        executed: Sequence[str],
    ) -> None:
        event = ExecutionError(
            self.prompt_id,
            self.client_id,
            node.id,
            node.spec.id,
            tuple(executed),
            f"{error}\n",
            type_name(error),
            tuple(traceback.format_tb(error.__traceback__)),
            {name: [shown(item) for item in items] for name, items in inputs.items()},
            tuple(executed),
        )
        self._status = "error"
        self._remember(
            "execution_error",
            node_id=event.node_id,
            node_type=event.node_type,
            executed=list(event.executed),
            exception_message=event.exception_message,
            exception_type=event.exception_type,
            traceback=list(event.traceback),
            current_inputs=dict(event.current_inputs),
            current_outputs=list(event.current_outputs),
        )
        self._publish(event)

    def interrupted(self, node: Node | None, executed: Sequence[str]) -> None:
        """`node` is one of those that were running; a job may be stopped before it has any."""
        node_id, node_type = (node.real_id, node.spec.id) if node else ("", "")
        self._status = "interrupted"
        self._remember("execution_interrupted", node_id=node_id, node_type=node_type, executed=list(executed))
        self._publish(
            ExecutionInterrupted(self.prompt_id, self.client_id, node_id, node_type, tuple(executed))
        )

    def succeeded(self) -> None:
        self._status = "success"
        self._remember("execution_success")
        self._publish(ExecutionSuccess(self.prompt_id, self.client_id))

    def outcome(self) -> Outcome:
        assert self._status is not None, f"job {self.prompt_id} has not ended"
        return Outcome(self._status, dict(self._outputs), dict(self._meta), tuple(self._messages))

    def _remember(self, name: str, **data: Any) -> None:
        data |= {"prompt_id": self.prompt_id, "timestamp": int(time.time() * 1000)}
        self._messages.append((name, data))


def name_of(node: Node) -> NodeName:
    return NodeName(node.id, node.display_id, node.parent_id)


def shown(value: Any) -> str | int | float | bool | None:
    """An input as an error message shows it: numbers and text as they are, arrays by their shape."""
    if value is None or isinstance(value, bool | int | float):
        return value
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
