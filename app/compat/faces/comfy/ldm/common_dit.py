"""`comfy.ldm.common_dit`: what transformers over patches share."""

from __future__ import annotations

import torch

rms_norm = torch.nn.functional.rms_norm


def pad_to_patch_size(
    img: torch.Tensor, patch_size: tuple[int, ...] = (2, 2), padding_mode: str = "circular"
) -> torch.Tensor:
    """Whole patches in every dimension from the third on; what is added comes after."""
    padding: list[int] = []
    for size, patch in zip(reversed(img.shape[2:]), reversed(patch_size)):
        padding += [0, -size % patch]
    return torch.nn.functional.pad(img, padding, mode=padding_mode)
