"""`comfy_execution.utils`: who runs here."""

from __future__ import annotations

from typing import NamedTuple

from nodes.context import current_context, current_invocation


class ExecutionContext(NamedTuple):
    prompt_id: str
    node_id: str
    list_index: int | None


def get_executing_context() -> ExecutionContext | None:
    """None outside of a node."""
    context, invocation = current_context.get(None), current_invocation.get(None)
    if context is None:
        return None
    return ExecutionContext(context.prompt_id, context.node_id, invocation.index if invocation else None)
