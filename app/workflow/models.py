"""Model files that a node declares and that its lists of choices do not offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.workflow.defaults import choices
from app.workflow.schema import Node
from app.workflow.widgets import Widget

_DECLARED = ("name", "url", "directory", "hash", "hash_type")


def missing_models(execution_id: str, node: Node, widgets: Sequence[Widget]) -> list[dict[str, Any]]:
    """As `[{node, name, url, directory}]`; a node without a list of choices cannot tell what is here."""
    declared = node.properties.get("models")
    offers = [choices(widget.options) for widget in widgets if widget.type == "COMBO"]
    if not isinstance(declared, list) or not offers:
        return []
    here = {_file_name(choice) for offer in offers for choice in offer}
    return [
        {"node": execution_id, **{key: model[key] for key in _DECLARED if model.get(key)}}
        for model in declared
        if isinstance(model, dict) and model.get("name") and _file_name(model["name"]) not in here
    ]


def _file_name(path: Any) -> str:
    """A list shows models with their folders, some with Windows' separators."""
    return str(path).replace("\\", "/").rpartition("/")[2]
