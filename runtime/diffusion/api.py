"""What callers say to the diffusion runtime and what they hear back. Types only: no diffusers, no engine.

MODEL, CLIP and VAE sockets carry the three references below: frozen, cheap, hashable descriptions of weights
and of what differs for one request (patches). Weights themselves never leave the runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from runtime.platform.handle import Event, Handle

if TYPE_CHECKING:
    import torch

# ComfyUI's CONDITIONING: a list of [tokens [1, L, D], dict]. Keys that are read: pooled_output, strength,
# mask, mask_strength, set_area_to_bounds, area, start_percent, end_percent, control, guidance,
# concat_latent_image, concat_mask. All other keys reach the family as `Cond.extra`.
Conditioning = list[list[Any]]


@dataclass(frozen=True, slots=True)
class LoraPatch:
    path: Path
    strength: float


@dataclass(frozen=True, slots=True)
class SamplingOverride:
    """Replaces a family's noise schedule: `shift` of a flow model, `prediction` (eps, v) of others."""

    shift: float | None = None
    prediction: str | None = None
    zero_terminal_snr: bool = False


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A denoising network. `weights` is a checkpoint or a diffusers folder (also of the network alone)."""

    weights: Path
    family: str
    loras: tuple[LoraPatch, ...] = ()
    sampling: SamplingOverride | None = None

    def with_lora(self, lora: LoraPatch) -> ModelRef:
        return replace(self, loras=(*self.loras, lora))


@dataclass(frozen=True, slots=True)
class TextEncoderRef:
    """One or more text encoders that serve a family together. `stop_layer` is -1 to -24, or None."""

    weights: tuple[Path, ...]
    family: str
    stop_layer: int | None = None
    loras: tuple[LoraPatch, ...] = ()

    def with_lora(self, lora: LoraPatch) -> TextEncoderRef:
        return replace(self, loras=(*self.loras, lora))


@dataclass(frozen=True, slots=True)
class VaeRef:
    """An autoencoder; `factor` is pixels per latent cell, `channels` the latent's."""

    weights: Path
    family: str
    channels: int
    factor: int


@dataclass(frozen=True, slots=True)
class ControlRef:
    """A ControlNet's weights."""

    weights: Path
    family: str


@dataclass(frozen=True, slots=True)
class Control:
    """A conditioning's `control` value: `hint` is an IMAGE [B, H, W, 3]; `previous` chains another."""

    net: ControlRef
    hint: torch.Tensor
    strength: float
    start_percent: float = 0.0
    end_percent: float = 1.0
    previous: Control | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one checkpoint holds; a part that it lacks is None."""

    model: ModelRef | None
    clip: TextEncoderRef | None
    vae: VaeRef | None


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One KSampler run.

    `latent` is [B, C, h, w] in the autoencoder's own scale, as ComfyUI's LATENT; `latent_factor` is the
    pixels-per-cell that an empty latent was made for (8) when it must be adapted to the model, else None.
    `sigmas`, where given, replaces steps, scheduler, denoise and the start and end step. `noise` replaces the
    noise of the seed. `end_step` beyond the table means its end. `deterministic` keeps this request out of
    merged batches.
    """

    id: str
    model: ModelRef
    latent: torch.Tensor
    positive: Conditioning
    negative: Conditioning
    seed: int = 0
    steps: int = 20
    cfg: float = 8.0
    sampler: str = "euler"
    scheduler: str = "simple"
    denoise: float = 1.0
    start_step: int = 0
    end_step: int = 10_000
    add_noise: bool = True
    full_denoise: bool = True
    noise_mask: torch.Tensor | None = None
    batch_index: tuple[int, ...] | None = None
    latent_factor: int | None = None
    sigmas: torch.Tensor | None = None
    noise: torch.Tensor | None = None
    previews: bool = True
    deterministic: bool = False


@dataclass(frozen=True, slots=True)
class EncodeTextRequest:
    """`texts` has one entry, or one for each encoder where a family takes several (SDXL: global, local)."""

    id: str
    clip: TextEncoderRef
    texts: tuple[str, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EncodeImageRequest:
    """`pixels` is an IMAGE [B, H, W, 3] in 0..1. The result is the distribution's mode, [B, C, h, w]."""

    id: str
    vae: VaeRef
    pixels: torch.Tensor
    tile: int | None = None
    overlap: int = 64


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """The result is an IMAGE [B, H, W, 3] in 0..1. `tile` and `overlap` are in pixels; None decodes whole."""

    id: str
    vae: VaeRef
    samples: torch.Tensor
    tile: int | None = None
    overlap: int = 64


Request = SampleRequest | EncodeTextRequest | EncodeImageRequest | DecodeRequest


@dataclass(frozen=True, slots=True)
class Progress(Event):
    step: int
    steps: int


@dataclass(frozen=True, slots=True)
class Preview(Event):
    """`rgb` is uint8 [h, w, 3], the last denoised latent of the first image as approximate colours."""

    rgb: torch.Tensor
    step: int
    steps: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """`latent` is where the sampler ended, `denoised` the last model answer; both [B, C, h, w] on the CPU."""

    latent: torch.Tensor
    denoised: torch.Tensor


@dataclass(frozen=True, slots=True)
class DiffusionStats:
    """Counters since start. `rows` and `forwards` count denoising rows and network calls."""

    forwards: int
    rows: int
    running: int
    conditioning_hits: int
    conditioning_misses: int


class DiffusionRuntime(Protocol):
    """Any thread may call. `inspect_*` read file headers only; weights load with the first request for them.

    A request that cannot be served ends with `Failed` carrying a `RuntimeFault`; `submit` itself does not
    raise. `inspect_*` raise `MissingFile` or `Unsupported`.
    """

    def samplers(self) -> tuple[str, ...]: ...

    def schedulers(self) -> tuple[str, ...]: ...

    def inspect_checkpoint(self, path: Path) -> Checkpoint: ...

    def inspect_model(self, path: Path) -> ModelRef: ...

    def inspect_clip(self, paths: tuple[Path, ...], kind: str) -> TextEncoderRef: ...

    def inspect_vae(self, path: Path) -> VaeRef: ...

    def inspect_control(self, path: Path) -> ControlRef: ...

    def sigmas(self, model: ModelRef, scheduler: str, steps: int, denoise: float) -> torch.Tensor:
        """The noise levels that a sampler would walk, highest first, float32 [n + 1]."""

    def submit(self, request: Request) -> Handle[Any]:
        """The result by the request's type: `Sampled`, a `Conditioning`, a latent or an image tensor."""

    def cancel(self, request_id: str) -> None: ...

    def unload(self) -> None: ...

    def stats(self) -> DiffusionStats: ...

    def close(self) -> None: ...
