"""Encoded prompts by their content, so that a prompt is encoded once; the least recently used goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, TextEncoderRef

BUDGET_BYTES = 256 << 20

Key = tuple[TextEncoderRef, tuple[str, ...]]


class ConditioningCache:
    """Only the device's thread touches it; the counters may be read from anywhere."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.hits = 0
        self.misses = 0
        self._budget_bytes = budget_bytes
        self._entries: OrderedDict[Key, Conditioning] = OrderedDict()
        self._size_bytes = 0

    def get(self, clip: TextEncoderRef, texts: tuple[str, ...]) -> Conditioning | None:
        found = self._entries.get((clip, texts))
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end((clip, texts))
        return found

    def put(self, clip: TextEncoderRef, texts: tuple[str, ...], conditioning: Conditioning) -> None:
        if (clip, texts) in self._entries:
            return
        self._entries[clip, texts] = conditioning
        self._size_bytes += _size_bytes(conditioning)
        while self._size_bytes > self._budget_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._size_bytes -= _size_bytes(dropped)

    def clear(self) -> None:
        self._entries.clear()
        self._size_bytes = 0


def _size_bytes(conditioning: Conditioning) -> int:
    values: list[Any] = [value for tokens, told in conditioning for value in (tokens, *told.values())]
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))
