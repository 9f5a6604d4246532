"""Attention over keys and values that lie in pages, in plain torch: one token of many rows, or many of one
row.

It knows nothing of causality or windows: `bias` says what a query may see.
"""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention


def page_index(pages: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Where each row's pages of each head lie in the pool seen as [P * H, S * D]; serves all layers alike."""
    # pages: [R, N] -> [R * H * N]
    heads = torch.arange(num_heads, device=pages.device)
    return (pages[:, None, :] * num_heads + heads[None, :, None]).reshape(-1)


def gather(pool: torch.Tensor, index: torch.Tensor, rows: int) -> torch.Tensor:
    # pool: [P, H, S, D], index: [R * H * N] -> [R * H, N * S, D]
    num_pages, heads, size, width = pool.shape
    gathered = pool.view(num_pages * heads, size * width).index_select(0, index)
    return gathered.view(rows * heads, -1, width)


def decode(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor,
    scale: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """One query token a row, with rows padded to the longest."""
    # query: [R, Hq, D]; keys, values: [R * H, L, D]; bias: [R * H, 1, L]; sinks: [Hq] -> [R, Hq, Dv]
    rows, query_heads, width = query.shape
    batch, _, value_width = values.shape
    group = rows * query_heads // batch
    grouped = query.reshape(batch, group, width)
    if sinks is not None:
        sinks = sinks.view(-1, group).repeat(rows, 1)[:, :, None]
    return _attend(grouped, keys, values, bias, scale, softcap, sinks).view(rows, query_heads, value_width)


def chunk(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor | None,
    scale: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Many query tokens of one row; without a `bias` they are the whole sequence and plainly causal."""
    # query: [Hq, n, D]; keys, values: [H, L, D]; bias: [n, L]; sinks: [Hq] -> [Hq, n, Dv]
    repeats = query.shape[0] // keys.shape[0]
    keys, values = keys.repeat_interleave(repeats, 0), values.repeat_interleave(repeats, 0)
    if softcap is None and sinks is None:
        out = scaled_dot_product_attention(
            query[None], keys[None], values[None], attn_mask=bias, scale=scale, is_causal=bias is None
        )
        return out[0]
    assert bias is not None, "softcap and sinks come with a bias"
    return _attend(
        query, keys, values, bias[None], scale, softcap, None if sinks is None else sinks[:, None, None]
    )


def _attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor,
    scale: float,
    softcap: float | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    # query: [B, n, D]; keys, values: [B, L, D]; bias: [B or 1, 1 or n, L]; sinks: [B, 1 or n, 1]
    if softcap is None:
        shape = (query.shape[0], query.shape[1], keys.shape[1])
        scores = torch.baddbmm(bias.expand(shape), query, keys.transpose(1, 2), alpha=scale)
    else:
        scores = torch.bmm(query, keys.transpose(1, 2)).mul_(scale / softcap).tanh_().mul_(softcap) + bias
    if sinks is not None:
        # A sink takes part in the softmax and has no value.
        scores = torch.cat([scores, sinks.to(scores.dtype).expand(*scores.shape[:2], 1)], -1)
    weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
    if sinks is not None:
        weights = weights[..., :-1]
    return torch.bmm(weights, values)
