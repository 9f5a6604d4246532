"""`comfy.ldm.modules.attention`: attention for a pack's own networks, by torch. Blocks are names."""

from __future__ import annotations

from typing import Any

import torch

from app.compat.named import named

(
    CrossAttention,
    BasicTransformerBlock,
    SpatialTransformer,
    SpatialVideoTransformer,
    FeedForward,
) = named(
    "comfy.ldm.modules.attention",
    "CrossAttention",
    "BasicTransformerBlock",
    "SpatialTransformer",
    "SpatialVideoTransformer",
    "FeedForward",
)


def attention_pytorch(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    heads: int,
    mask: torch.Tensor | None = None,
    attn_precision: torch.dtype | None = None,
    skip_reshape: bool = False,
    skip_output_reshape: bool = False,
    **_options: Any,
) -> torch.Tensor:
    """[B, tokens, heads * D], or [B, heads, tokens, D] with `skip_reshape`; out as [B, tokens, heads * D]."""
    if not skip_reshape:
        q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    if mask is not None and mask.ndim < 4:
        mask = mask[:, None] if mask.ndim == 3 else mask[None, None]
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out if skip_output_reshape else out.transpose(1, 2).flatten(2)


optimized_attention = optimized_attention_masked = attention_pytorch
attention_basic = attention_split = attention_sub_quad = attention_pytorch


def optimized_attention_for_device(device: Any, mask: bool = False, small_input: bool = False) -> Any:
    return attention_pytorch


def default(val: Any, d: Any) -> Any:
    return d if val is None else val


def exists(val: Any) -> bool:
    return val is not None
