"""Put new keys or values of packed tokens into their slots of a paged pool."""

from __future__ import annotations

import torch


def slot_index(pages: torch.Tensor, offsets: torch.Tensor, num_heads: int, page_size: int) -> torch.Tensor:
    """Rows of the flattened pool for each token and head; the same for all layers with that many heads."""
    # pages, offsets: [T] -> [T * H]
    heads = torch.arange(num_heads, device=pages.device)
    return ((pages[:, None] * num_heads + heads) * page_size + offsets[:, None]).reshape(-1)


def write(pool: torch.Tensor, new: torch.Tensor, index: torch.Tensor) -> None:
    # pool: [P, H, S, D], new: [T, H, D], index: [T * H] from slot_index
    width = pool.shape[-1]
    pool.view(-1, width).index_copy_(0, index, new.reshape(-1, width))
