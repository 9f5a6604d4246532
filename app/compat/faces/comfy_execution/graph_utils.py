"""`comfy_execution.graph_utils`: builds the prompt of an expansion, node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Link = list[Any]


def is_link(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], int | float)
        and not isinstance(value[1], bool)
    )


class Node:
    def __init__(self, id: str, class_type: str, inputs: Mapping[str, Any]) -> None:
        self.id = id
        self.class_type = class_type
        self.inputs = dict(inputs)
        self.override_display_id: str | None = None

    def out(self, index: int) -> Link:
        return [self.id, index]

    def set_input(self, key: str, value: Any) -> None:
        """None takes the input away."""
        if value is None:
            self.inputs.pop(key, None)
        else:
            self.inputs[key] = value

    def get_input(self, key: str) -> Any:
        return self.inputs.get(key)

    def set_override_display_id(self, override_display_id: str) -> None:
        self.override_display_id = override_display_id

    def serialize(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"class_type": self.class_type, "inputs": self.inputs}
        if self.override_display_id is not None:
            entry["override_display_id"] = self.override_display_id
        return entry


class GraphBuilder:
    """Ids are `prefix` and a name or number. Without `prefix` they are unique to the call of the node."""

    _default_prefix_root = ""
    _default_prefix_call_index = 0
    _default_prefix_graph_index = 0

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = self.alloc_prefix() if prefix is None else prefix
        self.nodes: dict[str, Node] = {}
        self.id_gen = 1

    @classmethod
    def set_default_prefix(cls, prefix_root: str, call_index: int, graph_index: int = 0) -> None:
        """For code outside of a node; inside one, the running call decides."""
        cls._default_prefix_root = prefix_root
        cls._default_prefix_call_index = call_index
        cls._default_prefix_graph_index = graph_index

    @classmethod
    def alloc_prefix(
        cls, root: str | None = None, call_index: int | None = None, graph_index: int | None = None
    ) -> str:
        if root is None and call_index is None and graph_index is None:
            running = _prefix_of_running_call()
            if running is not None:
                return running
        root = cls._default_prefix_root if root is None else root
        call_index = cls._default_prefix_call_index if call_index is None else call_index
        graph_index = cls._default_prefix_graph_index if graph_index is None else graph_index
        cls._default_prefix_graph_index += 1
        return f"{root}.{call_index}.{graph_index}."

    def node(self, class_type: str, id: str | None = None, **kwargs: Any) -> Node:
        if id is None:
            id = str(self.id_gen)
            self.id_gen += 1
        id = f"{self.prefix}{id}"
        if id not in self.nodes:
            self.nodes[id] = Node(id, class_type, kwargs)
        return self.nodes[id]

    def lookup_node(self, id: str) -> Node | None:
        return self.nodes.get(f"{self.prefix}{id}")

    def finalize(self) -> dict[str, Any]:
        return {id: node.serialize() for id, node in self.nodes.items()}

    def replace_node_output(self, node_id: str, index: int, new_value: Any) -> None:
        """Every input that takes that output takes `new_value`; None takes the input away."""
        old = [f"{self.prefix}{node_id}", index]
        for node in self.nodes.values():
            for key in [key for key, value in node.inputs.items() if is_link(value) and value == old]:
                node.set_input(key, new_value)

    def remove_node(self, id: str) -> None:
        del self.nodes[f"{self.prefix}{id}"]


def add_graph_prefix(
    graph: Mapping[str, Any], outputs: tuple[Any, ...] | list[Any], prefix: str
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The graph with `prefix` before every id, and the outputs that point into it."""

    def moved(value: Any) -> Any:
        return [f"{prefix}{value[0]}", value[1]] if is_link(value) else value

    renamed = {
        f"{prefix}{id}": {
            **entry,
            "inputs": {key: moved(value) for key, value in entry.get("inputs", {}).items()},
        }
        for id, entry in graph.items()
    }
    return renamed, tuple(moved(value) for value in outputs)


def _prefix_of_running_call() -> str | None:
    # imported here, so that a client of a server can build prompts with this file alone
    from nodes.context import current_context, current_invocation

    context, invocation = current_context.get(None), current_invocation.get(None)
    if context is None or invocation is None:
        return None
    return f"{context.node_id}.{invocation.index}.{invocation.next_graph()}."


def __getattr__(name: str) -> Any:
    """Very old packs look for the blocker here."""
    if name == "ExecutionBlocker":
        from nodes.spec import Blocker

        return Blocker
    raise AttributeError(name)
