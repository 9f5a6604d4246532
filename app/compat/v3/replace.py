"""One class that stands in for another that is gone, as packs declare it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class NodeReplace:
    """`input_mapping` has {new_id, old_id} or {new_id, set_value}, `output_mapping` {new_idx, old_idx}."""

    new_node_id: str
    old_node_id: str
    old_widget_ids: Sequence[str] | None = None
    input_mapping: Sequence[Mapping[str, Any]] | None = None
    output_mapping: Sequence[Mapping[str, Any]] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "new_node_id": self.new_node_id,
            "old_node_id": self.old_node_id,
            "old_widget_ids": list(self.old_widget_ids) if self.old_widget_ids else None,
            "input_mapping": [dict(one) for one in self.input_mapping] if self.input_mapping else None,
            "output_mapping": [dict(one) for one in self.output_mapping] if self.output_mapping else None,
        }
