"""An unfinished latent as approximate colours, seldom enough not to slow the work."""

from __future__ import annotations

import torch

from runtime.diffusion.families.base import LatentFormat

INTERVAL_S = 0.15


def latent_to_rgb(latent: torch.Tensor, latent_format: LatentFormat) -> torch.Tensor | None:
    """The first image of [B, C, h, w], of the network's scale, as uint8 [h, w, 3] on the CPU.

    None where the format has no colours.
    """
    if latent_format.rgb is None:
        return None
    rgb = latent_format.rgb.to(latent)
    colours = latent[0].movedim(0, -1) @ rgb
    if latent_format.rgb_bias is not None:
        colours = colours + latent_format.rgb_bias.to(latent)
    return ((colours + 1) * 127.5).round().clamp(0, 255).to("cpu", torch.uint8)


class PreviewClock:
    """Says when the next preview of one request is due."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_due(self, now: float) -> bool:
        if now - self._last < INTERVAL_S:
            return False
        self._last = now
        return True
