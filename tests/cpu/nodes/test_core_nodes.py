"""Our declarations against the facts of ComfyUI's core nodes: names, types, defaults, ranges, outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.registry import Registry
from nodes.spec import NodeSpec, Slot
from runtime.diffusion.samplers import NAMES as SAMPLERS
from runtime.diffusion.sigmas import spacings

FACTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("core_nodes.json").read_text())
GROUPS = ("required", "optional")
# Facts that say nothing about how a prompt is read, and that ours states otherwise.
UNSAID = ("placeholder", "tooltip", "display", "template")


class NoFiles:
    """A library without any file."""

    def names(self, folder: str) -> list[str]:
        return []

    def input_names(self, kind: str) -> list[str]:
        return []

    def language_models(self) -> list[str]:
        return []


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    registry.load_builtin()
    return registry


def described(spec: NodeSpec) -> dict[str, Any]:
    slots = spec.inputs(NoFiles())
    groups = {group: {s.name: entry(s) for s in slots if s.group == group} for group in GROUPS}
    flags = {"deprecated": spec.deprecated, "experimental": spec.experimental, "output_node": spec.is_output}
    return {
        "display_name": spec.display_name,
        "category": spec.category,
        **{name: True for name, value in flags.items() if value},
        **{group: slots for group, slots in groups.items() if slots},
        "output": [output.type for output in spec.outputs],
        "output_name": [output.name for output in spec.outputs],
    }


def entry(slot: Slot) -> list[Any]:
    options = {key: value for key, value in slot.options.items() if key not in UNSAID}
    if slot.type == "STRING" and options.get("default") == "":
        del options["default"]
    return [slot.type, options | ({"choices": list(slot.choices)} if slot.choices else {})]


@pytest.mark.parametrize("id", FACTS)
def test_a_core_node_is_declared_as_in_comfyui(id: str, registry: Registry) -> None:
    ours, facts = described(registry[id]), FACTS[id]
    assert ours == facts
    for group in GROUPS:
        assert list(ours.get(group, {})) == list(facts.get(group, {})), "the order of inputs"


@pytest.mark.parametrize("id", FACTS)
def test_defaults_of_a_core_node_have_the_type_of_the_input(id: str, registry: Registry) -> None:
    wanted = {"INT": int, "FLOAT": (int, float), "STRING": str, "BOOLEAN": bool}
    for slot in registry[id].inputs(NoFiles()):
        if slot.type in wanted and "default" in slot.options:
            assert isinstance(slot.options["default"], wanted[slot.type]), slot


@pytest.mark.parametrize("id", ["KSampler", "KSamplerAdvanced"])
def test_what_a_sampler_node_offers_is_what_the_runtime_serves(id: str, registry: Registry) -> None:
    offered = {slot.name: slot.choices for slot in registry[id].inputs(NoFiles())}
    assert list(offered["sampler_name"] or ()) == list(SAMPLERS)
    assert list(offered["scheduler"] or ()) == list(spacings)
