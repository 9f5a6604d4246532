"""LoRA adapters beside one loaded model: requests of one batch may each name another, or none.

A layer's low-rank addition runs in a hook behind the layer, so it matters not what kind of linear layer that
is. Layers have hooks only while requests with adapters are there.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers.pytorch_utils import Conv1D

from runtime.llm import adapter_file
from runtime.llm.adapter_file import AdapterFile, LowRank
from runtime.llm.sequence import Row
from runtime.platform.errors import MissingFile, Unsupported
from treadle_kernels import lora


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """Whoever computes with it holds it, so that it may leave the store at any time."""

    name: str
    hash: bytes
    layers: Mapping[nn.Module, LowRank]

    @property
    def num_bytes(self) -> int:
        return sum(layer.num_bytes for layer in self.layers.values())

    def own_key(self, key: int) -> int:
        """What the prefix tree knows a prompt's first token by, so that no page of it is shared with prompts
        of other adapters.
        """
        return -1 - int.from_bytes(hashlib.sha256(self.hash + str(key).encode()).digest())


class Adapters:
    """`paths` are the folders there are, by name. At most `max_bytes` of weights are kept for later requests,
    least recently used ones go first.
    """

    def __init__(self, network: Any, paths: Callable[[], Mapping[str, Path]], max_bytes: int) -> None:
        self._network = network
        self._paths = paths
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, tuple[Any, Adapter]] = OrderedDict()
        self._lock = threading.Lock()
        self._hooks: dict[nn.Module, RemovableHandle] = {}
        self._groups: list[tuple[Adapter, torch.Tensor | None]] = []

    @property
    def num_bytes(self) -> int:
        return sum(adapter.num_bytes for _, adapter in self._kept.copy().values())

    # -- beside the engine's thread --------------------------------------------------------------------------

    def get(self, name: str) -> Adapter:
        """Reads it where it is new or its files are. Raises `MissingFile` or `Unsupported`."""
        known = self._paths()
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise MissingFile(f"there is no adapter called {name}; there are: {there}")
        with self._lock:
            stamp = adapter_file.stamp(known[name])
            if name not in self._kept or self._kept[name][0] != stamp:
                self._kept[name] = stamp, self._fitted(name, adapter_file.read(known[name]))
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and self.num_bytes > self._max_bytes:
                self._kept.popitem(last=False)
            return self._kept[name][1]

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _fitted(self, name: str, file: AdapterFile) -> Adapter:
        parameter = next(self._network.parameters())
        inside = set(self._network.get_decoder().modules())
        layers = {}
        for path, pair in file.layers.items():
            module = self._layer(path)
            if module is None or module not in inside:
                raise Unsupported(
                    f"the adapter {name} changes {path}, which is no linear layer of this model's language"
                    " part"
                )
            mine, its = (pair.down.shape[1], pair.up.shape[0]), _sizes(module)
            if mine != its:
                raise Unsupported(
                    f"the adapter {name} is made for another model: at {path} it takes and gives {mine}"
                    f" numbers, and the layer {its}"
                )
            layers[module] = LowRank(pair.down.to(parameter), pair.up.to(parameter))
        return Adapter(name, file.hash, layers)

    def _layer(self, path: str) -> nn.Module | None:
        """An adapter of the language model alone also fits a model that sees, around the same one."""
        starts = [(self._network, path), (self._network.get_decoder(), path.removeprefix("model."))]
        for root, below in starts:
            try:
                module: nn.Module = root.get_submodule(below)
            except AttributeError:
                continue
            # Experts see some of the rows only.
            if _sizes(module) is not None and "experts" not in below.split("."):
                return module
        return None

    # -- on the engine's thread ------------------------------------------------------------------------------

    @contextmanager
    def active(self, rows: Sequence[Row]) -> Iterator[None]:
        """For a forward of these rows, in packed order."""
        self._groups = _groups(rows, next(self._network.parameters()).device)
        for adapter, _ in self._groups:
            for module in adapter.layers:
                if module not in self._hooks:
                    self._hooks[module] = module.register_forward_hook(self._add)
        try:
            yield
        finally:
            self._groups = []

    def rest(self) -> None:
        """No request with an adapter is there."""
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()

    def _add(self, module: nn.Module, inputs: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        parts = [
            (rows, layer.down, layer.up)
            for adapter, rows in self._groups
            if (layer := adapter.layers.get(module)) is not None
        ]
        if parts:
            x = inputs[0]
            lora.add(out.view(-1, out.shape[-1]), x.reshape(-1, x.shape[-1]), parts)


def _groups(rows: Sequence[Row], device: torch.device) -> list[tuple[Adapter, torch.Tensor | None]]:
    """Each adapter with the packed rows that are its own; None where these are all."""
    if all(row.sequence.adapter is None for row in rows):
        return []
    places: dict[Adapter | None, list[int]] = {}
    first = 0
    for row in rows:
        places.setdefault(row.sequence.adapter, []).extend(range(first, first + row.count))
        first += row.count
    return [
        (adapter, None if len(places) == 1 else torch.tensor(mine, device=device))
        for adapter, mine in places.items()
        if adapter is not None
    ]


def _sizes(module: nn.Module) -> tuple[int, int] | None:
    """In and out of a linear layer of whatever kind."""
    if isinstance(module, Conv1D):
        return int(module.nx), int(module.nf)
    sizes = getattr(module, "in_features", None), getattr(module, "out_features", None)
    return None if None in sizes else (int(sizes[0]), int(sizes[1]))  # type: ignore[arg-type]
