"""What a family promises to the batcher: how latents, noise levels and conditionings become a diffusers call.

A family knows one architecture. It knows no sampler, no guidance, no other request.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import torch

    from runtime.diffusion.api import (
        Conditioning,
        ControlRef,
        ModelRef,
        SamplingOverride,
        TextEncoderRef,
        VaeRef,
    )
    from runtime.diffusion.sigmas import NoiseSchedule

Prediction = Literal["eps", "v", "flow"]


@dataclass(frozen=True, slots=True, eq=False)
class LatentFormat:
    """Between the autoencoder's scale and the network's: `(z - shift) * scale`, per channel where tensors.

    `rgb` [channels, 3] and `rgb_bias` [3] turn a network-scale latent into approximate colours in -1..1.
    """

    channels: int
    factor: int
    scale: float | torch.Tensor = 1.0
    shift: float | torch.Tensor = 0.0
    rgb: torch.Tensor | None = None
    rgb_bias: torch.Tensor | None = None

    def to_network(self, latent: torch.Tensor) -> torch.Tensor:
        return (latent - self.shift) * self.scale

    def from_network(self, latent: torch.Tensor) -> torch.Tensor:
        return latent / self.scale + self.shift


@dataclass(frozen=True, slots=True, eq=False)
class ControlInput:
    """One ControlNet for one row: `hint` [1, 3, H, W] in 0..1, already at the size the latent needs."""

    net: ControlRef
    hint: torch.Tensor
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Cond:
    """What one row is conditioned on. `tokens` [1, L, D], `pooled` [1, P], `concat` [1, C', h, w]."""

    tokens: torch.Tensor
    pooled: torch.Tensor | None = None
    guidance: float | None = None
    concat: torch.Tensor | None = None
    controls: tuple[ControlInput, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class Network(Protocol):
    """A loaded denoiser. Only the device's thread touches it."""

    dtype: torch.dtype

    def cond_key(self, cond: Cond) -> Hashable:
        """Rows whose keys are equal may share a forward. Families that pad or mask text return fewer keys."""

    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        """x [R, C, h, w], timestep [R], a cond a row -> the raw answer [R, C, h, w] (eps, v, flow)."""


class TextEncoder(Protocol):
    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        """Many prompts in as few forwards as they allow; each result as if it had been alone."""


class Autoencoder(Protocol):
    """Pixels are [B, 3, H, W] in -1..1, latents [B, C, h, w] in the autoencoder's own scale."""

    channels: int
    factor: int

    def encode(self, pixels: torch.Tensor) -> torch.Tensor: ...

    def decode(self, latent: torch.Tensor) -> torch.Tensor: ...


class Family(Protocol):
    """One architecture. `load_*` may take seconds and run on the device's thread."""

    name: str
    prediction: Prediction

    def latent_format(self, ref: ModelRef) -> LatentFormat: ...

    def schedule(self, ref: ModelRef, override: SamplingOverride | None) -> NoiseSchedule: ...

    def load_network(self, ref: ModelRef) -> Network: ...

    def load_text_encoder(self, ref: TextEncoderRef) -> TextEncoder: ...

    def load_autoencoder(self, ref: VaeRef) -> Autoencoder: ...
