"""`comfy_execution.graph`: blockers, and the prompt as nodes that build loops see it."""

from __future__ import annotations

from app.graph.hidden import DynamicPrompt
from app.graph.run import DependencyCycle as DependencyCycleError
from nodes.spec import Blocker as ExecutionBlocker

__all__ = ["DependencyCycleError", "DynamicPrompt", "ExecutionBlocker", "NodeInputError", "NodeNotFoundError"]


class NodeInputError(Exception):
    pass


class NodeNotFoundError(Exception):
    pass
