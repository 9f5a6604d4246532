"""Tokens as embeddings with features in their places, for models that take no features beside tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.llm.media import Features
from runtime.llm.sequence import Row


def embedded(network: Any, rows: Sequence[Row], features: Mapping[bytes, Features]) -> dict[str, Any]:
    """What a forward of these rows, in packed order, takes; `features` are their items' by hash."""
    table = network.get_input_embeddings()
    tokens = [token for row in rows for token in row.tokens]
    made = table(torch.tensor([tokens], device=table.weight.device))
    first = 0
    for row in rows:
        for placed in () if row.sequence.media is None else row.sequence.media.placed:
            start, stop = placed.rows_in(row.start, row.start + row.count)
            if start < stop:
                at = [first + position - row.start for position in placed.positions[start:stop]]
                made[0, at] = features[placed.item.hash].rows[start:stop].to(made)
        first += row.count
    return {"inputs_embeds": made}
