"""`--set ID.INPUT=VALUE`: one input of a prompt given on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.graph.parse import Specs
from nodes.spec import Library


class WrongSetting(ValueError):
    """The text says what there would have been."""


def with_settings(
    prompt: Mapping[str, Any], settings: Sequence[str], specs: Specs, library: Library
) -> dict[str, Any]:
    """A copy of the prompt with the settings in it."""
    changed = {id: {**node, "inputs": dict(node.get("inputs") or {})} for id, node in prompt.items()}
    for setting in settings:
        target, equals, text = setting.partition("=")
        if not equals:
            raise WrongSetting(f"--set {setting}: write it as ID.INPUT=VALUE")
        node_id = _node_of(target, changed)
        name = target[len(node_id) + 1 :]
        inputs = changed[node_id]["inputs"]
        spec = specs.find(str(changed[node_id].get("class_type")))
        declared = (
            [] if spec is None else [slot.name for slot in spec.inputs(library) if slot.group != "hidden"]
        )
        if name not in inputs and name not in declared:
            there_are = ", ".join(declared or inputs)
            raise WrongSetting(f"--set {setting}: node {node_id} has no input '{name}'; it has {there_are}")
        inputs[name] = text if isinstance(inputs.get(name), str) else _value(text)
    return changed


def _node_of(target: str, prompt: Mapping[str, Any]) -> str:
    """Ids and input names may both hold dots; of two ids that fit the longer one is meant."""
    fitting = [node_id for node_id in prompt if target.startswith(f"{node_id}.") and target != f"{node_id}."]
    if not fitting:
        raise WrongSetting(f"--set {target}: no such node; the workflow has {', '.join(prompt)}")
    return max(fitting, key=len)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
