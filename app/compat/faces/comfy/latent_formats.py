"""`comfy.latent_formats`: the scale of each family's latents."""

from __future__ import annotations

from typing import Any

from app.compat.named import named

# its scale is one for each channel, which the runtime takes from the autoencoder's configuration
(Wan21,) = named("comfy.latent_formats", "Wan21")


class LatentFormat:
    scale_factor: float = 1.0
    shift_factor: float = 0.0
    latent_channels = 4
    latent_dimensions = 2
    spacial_downscale_ratio = 8
    latent_rgb_factors: Any = None
    latent_rgb_factors_bias: Any = None
    taesd_decoder_name: str | None = None

    def process_in(self, latent: Any) -> Any:
        """From the autoencoder's scale to the network's."""
        return (latent - self.shift_factor) * self.scale_factor

    def process_out(self, latent: Any) -> Any:
        return latent / self.scale_factor + self.shift_factor


class SD15(LatentFormat):
    def __init__(self, scale_factor: float = 0.18215) -> None:
        self.scale_factor = scale_factor


class SDXL(LatentFormat):
    scale_factor = 0.13025


class SD3(LatentFormat):
    latent_channels = 16
    scale_factor = 1.5305
    shift_factor = 0.0609


class Flux(SD3):
    scale_factor = 0.3611
    shift_factor = 0.1159
