"""Tiny random networks in diffusers folders, and requests for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, ModelRef, SampleRequest
from runtime.diffusion.engine import Engine
from runtime.diffusion.model import Loader, inspect_model

TOKENS, WIDTH = 7, 32


def no_language_models() -> Mapping[str, Path]:
    return {}


def save_unet(folder: Path) -> Path:
    """eps prediction, latents of 4 channels."""
    from diffusers import UNet2DConditionModel

    torch.manual_seed(0)
    UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=8,
        norm_num_groups=8,
    ).save_pretrained(folder / "unet")
    return folder / "unet"


def save_sd3(folder: Path) -> Path:
    """Flow matching, latents of 16 channels."""
    from diffusers import SD3Transformer2DModel

    torch.manual_seed(0)
    SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=16,
        out_channels=16,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=64,
        pos_embed_max_size=16,
    ).save_pretrained(folder / "transformer")
    return folder / "transformer"


def engine(dtype: torch.dtype = torch.float32, **options: Any) -> Engine:
    return Engine(no_language_models, loader=Loader(no_language_models, "cpu", dtype), **options)


def model_of(folder: Path) -> ModelRef:
    return inspect_model(folder)


def cond(seed: int, dtype: torch.dtype = torch.float32, **told: Any) -> Conditioning:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(1, TOKENS, WIDTH, generator=generator).to(dtype)
    pooled = torch.randn(1, 64, generator=generator).to(dtype)
    return [[tokens, {"pooled_output": pooled, **told}]]


def request(name: str, model: ModelRef, dtype: torch.dtype = torch.float32, **changes: Any) -> SampleRequest:
    channels = 4 if model.family.startswith("sd1") else 16
    given: dict[str, Any] = {
        "latent": torch.zeros(1, channels, 8, 8, dtype=dtype),
        "positive": cond(1, dtype),
        "negative": cond(2, dtype),
        "steps": 4,
        "cfg": 4.0,
        "previews": False,
    }
    return SampleRequest(id=name, model=model, **{**given, **changes})
