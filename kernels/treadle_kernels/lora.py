"""Add low-rank products to what a linear layer made of packed rows: an adapter for each row, or none."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import linear

Part = tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]


def add(out: torch.Tensor, x: torch.Tensor, parts: Sequence[Part]) -> None:
    """`out` [T, O] += x A^T B^T in place, for the rows of each part (index [n], A [r, I], B [O, r]).

    An index of None means all rows. No row is in two parts.
    """
    # x: [T, I]
    for rows, down, up in parts:
        if rows is None:
            out += linear(linear(x, down), up)
        else:
            out.index_add_(0, rows, linear(linear(x.index_select(0, rows), down), up))
