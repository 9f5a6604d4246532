"""All node classes of this process by id, what /object_info says of them, and the packs that were loaded."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nodes
from nodes.declare import DECLARED
from nodes.packs import Pack, load_pack, pack_paths
from nodes.spec import Library, NodeSpec, Slot


class Registry:
    """Built-in nodes first; a pack cannot replace one of them, and of two packs the later one wins.

    `web` has the folders of browser scripts, by the name under which they are served.
    """

    def __init__(self, specs: Iterable[NodeSpec] = ()) -> None:
        self._specs = {spec.id: spec for spec in specs}
        self.packs: list[Pack] = []
        self.web: dict[str, str] = {}

    def find(self, id: str) -> NodeSpec | None:
        return self._specs.get(id)

    def knows(self, id: str) -> bool:
        return id in self._specs

    def __getitem__(self, id: str) -> NodeSpec:
        return self._specs[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def load_builtin(self) -> None:
        """Imports every module of this package; their `@node` declarations do the rest. Imports torch."""
        for module in pkgutil.iter_modules(nodes.__path__):
            importlib.import_module(f"nodes.{module.name}")
        self._specs.update(DECLARED)

    def load_packs(self, folder: Path, allowed: Iterable[str] | None = None) -> None:
        """Imports each pack of a custom_nodes folder; what fails is kept in `packs`, with its traceback.

        `allowed` names the packs to load; None loads all.
        """
        wanted = None if allowed is None else frozenset(allowed)
        for path in pack_paths(folder):
            if wanted is not None and path.name not in wanted:
                continue
            self.add_pack(load_pack(path))

    def add_pack(self, pack: Pack) -> None:
        self.packs.append(pack)
        self.web.update({name: str(folder) for name, folder in pack.web.items()})
        for spec in pack.specs:
            known = self._specs.get(spec.id)
            if known is None or known.pack is not None:
                self._specs[spec.id] = spec

    def object_info(self, id: str, library: Library) -> dict[str, Any]:
        """One class as ComfyUI describes it; a pack's INPUT_TYPES may raise anything here."""
        spec = self._specs[id]
        slots = spec.inputs(library)
        groups = dict.fromkeys(["required", *(slot.group for slot in slots)])
        info: dict[str, Any] = {
            "input": {group: _entries(slots, group) for group in groups},
            "input_order": {group: list(_entries(slots, group)) for group in groups},
            "is_input_list": spec.input_is_list,
            "output": [list(o.choices) if o.choices is not None else o.type for o in spec.outputs],
            "output_is_list": [output.is_list for output in spec.outputs],
            "output_name": [output.name for output in spec.outputs],
            "name": spec.id,
            "display_name": spec.display_name,
            "description": spec.description,
            "python_module": spec.python_module,
            "category": spec.category,
            "output_node": spec.is_output,
            "has_intermediate_output": spec.has_intermediate_output,
        }
        return info | _rare_facts(spec)


def _entries(slots: Iterable[Slot], group: str) -> dict[str, Any]:
    """Hidden inputs are described by their type alone."""
    return {
        slot.name: slot.type if group == "hidden" else slot.config() for slot in slots if slot.group == group
    }


def _rare_facts(spec: NodeSpec) -> dict[str, Any]:
    tooltips = [output.tooltip for output in spec.outputs]
    facts: dict[str, Any] = {
        "deprecated": spec.deprecated,
        "experimental": spec.experimental,
        "api_node": spec.is_api_node,
        "search_aliases": list(spec.search_aliases),
        "output_tooltips": tooltips if any(tooltips) else [],
    }
    return {key: value for key, value in facts.items() if value}
