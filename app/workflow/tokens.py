"""`%Node.widget%` in texts: where the value of another widget goes into a file name or a primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.instance import Instance
from app.workflow.schema import Node
from app.workflow.texts import as_text, fill_tokens
from app.workflow.tree import Definitions, push_primitive

REPLACES = "Run widget replace on values"


@dataclass(frozen=True, slots=True)
class Tokens:
    root: Instance
    definitions: Definitions
    now: datetime

    def fill(self, text: str) -> str:
        return fill_tokens(text, self._widget_text, self.now)

    def fill_primitives(self) -> None:
        """Those that ask for it by a property."""
        for instance in self.root.walk():
            for node_id, value in instance.primitives.items():
                node = instance.scope.nodes[node_id]
                if node.properties.get(REPLACES) and isinstance(value, str):
                    instance.primitives[node_id] = self.fill(value)
                    push_primitive(instance, node_id)

    def _widget_text(self, name: str, widget_name: str) -> str | None:
        """The name that a node has for searches goes before titles; the first node that has it counts."""
        for naming in (_search_name, self._title):
            for instance, node in self._nodes():
                if naming(node) == name:
                    widget = instance.widget(node.id, widget_name)
                    known = widget is not None and widget.value is not NOTHING
                    return as_text(widget.value) if widget is not None and known else None
        return None

    def _nodes(self) -> Iterator[tuple[Instance, Node]]:
        for instance in self.root.walk():
            for node in instance.scope.nodes.values():
                yield instance, node

    def _title(self, node: Node) -> str:
        return title_of(node, self.definitions)


def _search_name(node: Node) -> Any:
    return node.properties.get("Node name for S&R", node.type)


def title_of(node: Node, definitions: Definitions) -> str:
    return node.title or str(definitions.get(node.type, {}).get("display_name") or node.type)
