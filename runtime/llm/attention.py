"""The one function that transformers' models call instead of their own attention: it writes new keys and
values into their pages and attends through the page tables. All masking is its own; the model is told to make
no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from runtime.llm.batch import Batch, Chunk, DecodeGroup, Window
from runtime.llm.key_values import KeyValues, LayerShape
from runtime.platform.errors import Unsupported
from treadle_kernels import kv_write, paged_attention

IMPLEMENTATION = "treadle_paged"


@dataclass(frozen=True, slots=True)
class PagedForward:
    """What travels through the model to each layer; `windows` has the layers that see a limited past."""

    batch: Batch
    key_values: KeyValues
    windows: Mapping[int, Window]


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's call: its pools and how it scores."""

    keys: torch.Tensor
    values: torch.Tensor
    heads: int
    window: Window
    scale: float
    softcap: float | None
    sinks: torch.Tensor | None


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    paged: PagedForward | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    # query: [1, Hq, T, D]; key, value: [1, H, T, D] -> [1, T, Hq, Dv]
    # Models with states decode [R, Hq, 1, D], which are the same rows.
    num_rows = query.shape[0]
    query, key, value = (each if num_rows == 1 else each.transpose(0, 2) for each in (query, key, value))
    if paged is None:
        raise Unsupported(f"{type(module).__name__} is not handed the keyword arguments of the forward call")
    if position_bias is not None or attention_mask is not None:
        raise Unsupported(f"{type(module).__name__} brings its own mask or position bias")
    batch, index = paged.batch, module.layer_idx
    query = _at_their_positions(module, query, batch)
    assert isinstance(index, int), index
    new_keys, new_values = key[0].transpose(0, 1), value[0].transpose(0, 1)
    heads = new_keys.shape[1]
    shape = LayerShape(heads, new_keys.shape[2], new_values.shape[2], new_keys.dtype)
    keys, values = paged.key_values.layer(index, shape)
    slots = batch.slots(heads)
    kv_write.write(keys, new_keys, slots)
    kv_write.write(values, new_values, slots)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = _Layer(keys, values, heads, paged.windows.get(index), scale, softcap, s_aux)
    parts = [_decode(layer, group, query[0]) for group in batch.decode_groups]
    parts += [_prefill(layer, chunk, query[0], key[0], value[0]) for chunk in batch.chunks]
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    return out.unflatten(0, (num_rows, -1)), None


def _at_their_positions(module: torch.nn.Module, query: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Layers of Llama 4 without rotation scale a query by its place in the forward, and mean its position."""
    if not getattr(module, "attn_temperature_tuning", False) or module.use_rope:
        return query

    step, strength = float(module.floor_scale), float(module.attn_scale)  # type: ignore[arg-type]

    def scale(places: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.floor((places + 1.0) / step)) * strength + 1.0

    positions = batch.position_ids[0]
    wanted = scale(positions) / scale(torch.arange(len(positions), device=query.device))
    return (query * wanted[:, None]).to(query.dtype)


def _decode(layer: _Layer, group: DecodeGroup, query: torch.Tensor) -> torch.Tensor:
    # query: [Hq, T, D] -> [R, Hq, Dv]
    index = group.index(layer.heads)
    return paged_attention.decode(
        query[:, group.first : group.first + group.count].transpose(0, 1),
        paged_attention.gather(layer.keys, index, group.count),
        paged_attention.gather(layer.values, index, group.count),
        group.bias(layer.heads, layer.window, query.dtype),
        layer.scale,
        layer.softcap,
        layer.sinks,
    )


def _prefill(
    layer: _Layer, chunk: Chunk, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    # query: [Hq, T, D]; key, value: [H, T, D] -> [n, Hq, Dv]
    packed = slice(chunk.first, chunk.first + chunk.count)
    if chunk.start == 0:
        keys, values = key[:, packed], value[:, packed]
    else:
        index, length = chunk.index(layer.heads), chunk.start + chunk.count
        keys = paged_attention.gather(layer.keys, index, 1)[:, :length]
        values = paged_attention.gather(layer.values, index, 1)[:, :length]
    explicit = layer.softcap is not None or layer.sinks is not None
    bias = chunk.bias(layer.window, query.dtype, explicit)
    out = paged_attention.chunk(query[:, packed], keys, values, bias, layer.scale, layer.softcap, layer.sinks)
    return out.transpose(0, 1)


AttentionInterface.register(IMPLEMENTATION, attend)
