"""Small steps that several families take to turn rows into a network's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from runtime.diffusion.families.base import Cond, LatentFormat
from runtime.diffusion.parts import autoencoder_part, is_pipeline
from runtime.diffusion.vae import autoencoder_kind
from runtime.platform.checkpoint import read_config, read_tensors
from runtime.platform.errors import Unsupported

_CHUNK = 77


def stack_tokens(conds: Sequence[Cond], like: torch.Tensor) -> torch.Tensor:
    """[1, L, D] of each row -> [R, L, D] on the device and in the type of `like`."""
    return torch.cat([cond.tokens for cond in conds]).to(like.device, like.dtype)


def token_key(cond: Cond) -> int:
    """Equal for conditionings whose tokens `stack_repeated_tokens` brings to one length."""
    count = cond.tokens.shape[1]
    chunks = count // _CHUNK
    return 0 if count % _CHUNK == 0 and chunks.bit_count() == 1 else count


def stack_repeated_tokens(conds: Sequence[Cond], like: torch.Tensor) -> torch.Tensor:
    """[1, L, D] of each row -> [R, longest L, D], shorter ones repeated.

    Attention over tokens and over their repetition give the same, where positions are already in the tokens.
    """
    longest = max(cond.tokens.shape[1] for cond in conds)
    rows = [cond.tokens.repeat(1, longest // cond.tokens.shape[1], 1) for cond in conds]
    return torch.cat(rows).to(like.device, like.dtype)


def stack_pooled(conds: Sequence[Cond], width: int, like: torch.Tensor) -> torch.Tensor:
    """[1, P] of each row -> [R, P]; zeros for a conditioning without one."""
    rows = [torch.zeros(1, width) if cond.pooled is None else cond.pooled for cond in conds]
    if any(row.shape[-1] != width for row in rows):
        wrong = next(row.shape[-1] for row in rows if row.shape[-1] != width)
        raise Unsupported(f"the conditioning's pooled vector has {wrong} entries; this model takes {width}")
    return torch.cat([row.to(like.device, like.dtype) for row in rows])


def check_width(conds: Sequence[Cond], width: int) -> None:
    """A conditioning of another family's text encoder is the usual mistake."""
    for cond in conds:
        if cond.tokens.shape[-1] != width:
            raise Unsupported(
                f"the conditioning has tokens of width {cond.tokens.shape[-1]}; this model takes {width}: "
                "use the text encoder that belongs to it"
            )


def refuse_controls(conds: Sequence[Cond], family: str) -> None:
    if any(cond.controls for cond in conds):
        raise Unsupported(f"ControlNet is not supported for {family}; supported: SD1.5, SD2, SDXL")
    if any(cond.concat is not None for cond in conds):
        raise Unsupported(f"inpainting models are not supported for {family}; supported: SD1.5, SD2, SDXL")


def pad_to_patches(x: torch.Tensor, patch: int) -> torch.Tensor:
    """x [R, C, h, w] with height and width filled up to whole patches; the caller crops the answer."""
    height, width = x.shape[-2:]
    below, right = -height % patch, -width % patch
    return F.pad(x, (0, right, 0, below), mode="circular") if below or right else x


def latent_format_of(weights: Path, default: LatentFormat, device: str) -> LatentFormat:
    """The format of the checkpoint's own autoencoder; the family's published one where it brings none."""
    part = autoencoder_part(weights) if is_pipeline(weights) or weights.is_file() else None
    if part is None:
        return default
    kind = autoencoder_kind(part)
    if (part.path / "statistics.safetensors").is_file():
        statistics = read_tensors(part.path / "statistics.safetensors")
        mean, deviation = (
            statistics[name].float().view(1, -1, 1, 1).to(device) for name in ("latent_mean", "latent_std")
        )
        return LatentFormat(kind.channels, kind.factor, scale=1 / deviation, shift=mean)
    if not part.is_folder:
        return LatentFormat(kind.channels, kind.factor, default.scale, default.shift)
    config = part.config()
    return LatentFormat(
        kind.channels, kind.factor, config.get("scaling_factor") or 1.0, config.get("shift_factor") or 0.0
    )


def shift_of(weights: Path, default: float) -> float:
    """The flow shift that a diffusers folder's scheduler states; else the family's."""
    folder = weights / "scheduler"
    if not (folder / "scheduler_config.json").is_file():
        return default
    return float(read_config(folder, "scheduler_config.json").get("shift", default))


def ends_in_pure_noise(weights: Path) -> bool:
    """Whether a diffusers folder's scheduler asks for a terminal signal-to-noise ratio of zero."""
    folder = weights / "scheduler"
    if not (folder / "scheduler_config.json").is_file():
        return False
    return bool(read_config(folder, "scheduler_config.json").get("rescale_betas_zero_snr"))
