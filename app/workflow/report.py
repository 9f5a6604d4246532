"""What a conversion has to say beside the prompt."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ConversionWarning:
    node: str
    input: str | None
    rule: str
    detail: str


@dataclass(slots=True)
class Report:
    """`missing_types`: type to the nodes that need it. `id_map`: definition to its renumbered ids."""

    warnings: list[ConversionWarning] = field(default_factory=list)
    missing_types: dict[str, list[str]] = field(default_factory=dict)
    missing_models: list[dict[str, Any]] = field(default_factory=list)
    id_map: dict[str, dict[str, str]] = field(default_factory=dict)

    def warn(self, node: str, input_name: str | None, rule: str, detail: str) -> None:
        self.warnings.append(ConversionWarning(node, input_name, rule, detail))

    def miss(self, node_type: str, node: str) -> None:
        self.missing_types.setdefault(node_type, []).append(node)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
