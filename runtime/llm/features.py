"""Features of media by the hash of their content: each is encoded once while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from runtime.llm.embeddings import embedded
from runtime.llm.media import Features, Item, Kind, Placed
from runtime.llm.processors.base import Processor
from runtime.llm.sequence import Row

_ITEMS_A_FORWARD = 8


class FeatureStore:
    """`max_bytes` bounds what is kept between steps; what a step needs it has, whatever the bound.

    Touched by one thread only, the engine's or an encoder's.
    """

    def __init__(self, processor: Processor, network: Any, max_bytes: int) -> None:
        self._processor = processor
        self._network = network
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, Features] = OrderedDict()
        self.num_bytes = 0
        self.num_encoded = 0
        self.num_reused = 0

    def arguments(self, rows: Sequence[Row]) -> dict[str, Any]:
        """What a forward of these rows, in packed order, takes beside their tokens."""
        wanted = list(_wanted(rows))
        if not wanted:
            return {}
        known = self.encoded(placed.item for placed, _, _ in wanted)
        if self._processor.takes_embeddings:
            return embedded(self._network, rows, known)
        parts: dict[Kind, list[Features]] = {}
        for placed, start, stop in wanted:
            part = known[placed.item.hash].part(start, stop)
            parts.setdefault(placed.item.kind, []).append(part)
        return self._processor.arguments({kind: _joined(each) for kind, each in parts.items()})

    def encoded(self, items: Iterable[Item]) -> dict[bytes, Features]:
        """The features of each by its hash."""
        known: dict[bytes, Features] = {}
        missing: dict[Kind, list[Item]] = {}
        for item in {item.hash: item for item in items}.values():
            features = item.features or self._take(item.hash)
            if features is None:
                missing.setdefault(item.kind, []).append(item)
            else:
                known[item.hash] = features
        self.num_reused += len(known)
        for alike in missing.values():
            for first in range(0, len(alike), _ITEMS_A_FORWARD):
                group = alike[first : first + _ITEMS_A_FORWARD]
                made = self._processor.encode(self._network, group)
                known.update((item.hash, each) for item, each in zip(group, made, strict=True))
                self.num_encoded += len(group)
        for digest, features in known.items():
            self._keep(digest, features)
        return known

    def _take(self, digest: bytes) -> Features | None:
        if digest in self._kept:
            self._kept.move_to_end(digest)
        return self._kept.get(digest)

    def _keep(self, digest: bytes, features: Features) -> None:
        if digest in self._kept:
            return
        self._kept[digest] = features
        self.num_bytes += features.num_bytes
        while self.num_bytes > self._max_bytes:
            self.num_bytes -= self._kept.popitem(last=False)[1].num_bytes


def _wanted(rows: Sequence[Row]) -> Iterator[tuple[Placed, int, int]]:
    """The items whose places the rows compute, and which of their features fall into them."""
    for row in rows:
        if row.sequence.media is None:
            continue
        for placed in row.sequence.media.placed:
            start, stop = placed.rows_in(row.start, row.start + row.count)
            if start < stop:
                yield placed, start, stop


def _joined(parts: Sequence[Features]) -> Features:
    layers = zip(*(part.deep for part in parts), strict=True)
    return Features(torch.cat([part.rows for part in parts]), tuple(torch.cat(layer) for layer in layers))
