"""`comfy.sampler_helpers`: conditionings as flat dicts, masks in a latent's shape."""

from __future__ import annotations

import uuid
from typing import Any

import torch

from app.compat.named import named

(prepare_sampling, get_models_from_cond) = named(
    "comfy.sampler_helpers", "prepare_sampling", "get_models_from_cond"
)


def convert_cond(cond: list[list[Any]]) -> list[dict[str, Any]]:
    converted = []
    for features, values in cond:
        flat = dict(values)
        if features is not None:
            flat["cross_attn"] = features
        flat.setdefault("model_conds", {})
        flat["uuid"] = uuid.uuid4()
        converted.append(flat)
    return converted


def prepare_mask(noise_mask: torch.Tensor, shape: torch.Size, device: Any) -> torch.Tensor:
    """[B, C, h, w] of a latent's `shape`."""
    mask = noise_mask.reshape(-1, 1, *noise_mask.shape[-2:])
    mask = torch.nn.functional.interpolate(mask, size=tuple(shape[-2:]), mode="bilinear")
    mask = mask.expand(-1, shape[1], -1, -1)
    repeats = -(-shape[0] // mask.shape[0])
    return mask.repeat(repeats, 1, 1, 1)[: shape[0]].to(device)


def get_additional_models(conds: Any, dtype: Any) -> tuple[list[Any], int]:
    """Models that conditionings bring are loaded by the runtime with the request."""
    return [], 0


def cleanup_additional_models(models: Any) -> None:
    pass


def cleanup_models(conds: Any, models: Any) -> None:
    pass
