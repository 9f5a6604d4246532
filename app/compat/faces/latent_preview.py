"""`latent_preview`: progress of samplers. Previews of this program's own samplers need no help."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from app.compat.faces.comfy.utils import ProgressBar

MAX_PREVIEW_RESOLUTION = 512


class LatentPreviewMethod(Enum):
    NoPreviews = "none"
    Auto = "auto"
    Latent2RGB = "latent2rgb"
    TAESD = "taesd"

    @classmethod
    def from_string(cls, value: str) -> LatentPreviewMethod | None:
        return next((method for method in cls if method.value == value), None)


class LatentPreviewer:
    """A subclass turns a latent into a picture with `decode_latent_to_preview`."""

    def decode_latent_to_preview(self, x0: Any) -> Any:
        raise NotImplementedError("a previewer decodes latents in its subclass")

    def decode_latent_to_preview_image(self, preview_format: str, x0: Any) -> tuple[str, Any, int]:
        return preview_format, self.decode_latent_to_preview(x0), MAX_PREVIEW_RESOLUTION


class Latent2RGBPreviewer(LatentPreviewer):
    """Latent channels mixed to red, green and blue by `latent_rgb_factors` [channels][3]."""

    def __init__(
        self,
        latent_rgb_factors: Any,
        latent_rgb_factors_bias: Any = None,
        latent_rgb_factors_reshape: Any = None,
    ) -> None:
        import torch

        self.latent_rgb_factors = torch.tensor(latent_rgb_factors).T
        bias = latent_rgb_factors_bias
        self.latent_rgb_factors_bias = None if bias is None else torch.tensor(bias)
        self.latent_rgb_factors_reshape = latent_rgb_factors_reshape

    def decode_latent_to_preview(self, x0: Any) -> Any:
        import torch
        from PIL import Image

        latent = x0[0].float().cpu()
        latent = latent[:, 0] if latent.ndim == 4 else latent
        factors, bias = self.latent_rgb_factors.float(), self.latent_rgb_factors_bias
        rgb = torch.nn.functional.linear(latent.movedim(0, -1), factors, bias)
        return Image.fromarray(((rgb + 1) * 127.5).clamp(0, 255).to(torch.uint8).numpy())


def get_previewer(device: Any, latent_format: Any) -> LatentPreviewer | None:
    """None where the format does not say how its channels look."""
    factors = getattr(latent_format, "latent_rgb_factors", None)
    return None if factors is None else Latent2RGBPreviewer(factors)


def prepare_callback(
    model: Any, steps: int, x0_output_dict: dict[str, Any] | None = None
) -> Callable[[int, Any, Any, int], None]:
    bar = ProgressBar(steps)

    def callback(step: int, x0: Any, x: Any, total_steps: int) -> None:
        if x0_output_dict is not None:
            x0_output_dict["x0"] = x0
        bar.update_absolute(step + 1, total_steps)

    return callback


def set_preview_method(override: str | None = None) -> None:
    """The client decides for each prompt (`preview_method` of its extra data)."""
