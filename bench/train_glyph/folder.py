"""The checkpoint folder: a finished model's parts in diffusers' format, and the latents that measure it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from diffusers import AutoencoderDC, FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.train_glyph.text import Statistics, TextConfig

INDEX = {
    "_class_name": "StableDiffusion3Pipeline",
    "_diffusers_version": "0.42.1",
    "transformer": ["diffusers", "SD3Transformer2DModel"],
    "vae": ["diffusers", "AutoencoderDC"],
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "text_encoder": ["treadle", "LanguageFeatures"],
}
TEXT_STATISTICS = Path("text_encoder/statistics.safetensors")
TEXT_CONFIG = Path("text_encoder/config.json")
LATENT_STATISTICS = Path("vae/statistics.safetensors")
GLYPH_LATENTS = "latents.safetensors"


@dataclass(frozen=True, slots=True)
class LatentScale:
    """What standardises latents [..., C, h, w]; both are [C, 1, 1]."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, latents: Tensor) -> LatentScale:
        """`latents` is [N, C, h, w]."""
        return cls(latents.mean((0, 2, 3))[:, None, None], latents.std((0, 2, 3))[:, None, None])


def write_networks(folder: Path, transformer: SD3Transformer2DModel, autoencoder: AutoencoderDC) -> None:
    _write_network(transformer, folder / "transformer")
    _write_network(autoencoder, folder / "vae")
    FlowMatchEulerDiscreteScheduler(shift=1.0).save_pretrained(folder / "scheduler")
    _write_json(INDEX, folder / "model_index.json")


def write_statistics(folder: Path, text: TextConfig, statistics: Statistics, scale: LatentScale) -> None:
    (folder / TEXT_CONFIG).parent.mkdir(exist_ok=True)
    _write_json(asdict(text), folder / TEXT_CONFIG)
    save_file(asdict(statistics), folder / TEXT_STATISTICS)
    save_file(
        {"latent_mean": scale.mean.flatten(), "latent_std": scale.std.flatten()}, folder / LATENT_STATISTICS
    )


def read_text_encoder(folder: Path) -> tuple[TextConfig, Statistics]:
    config = json.loads((folder / TEXT_CONFIG).read_text())
    return TextConfig(**config), Statistics(**load_file(folder / TEXT_STATISTICS))


def read_latent_scale(folder: Path) -> LatentScale:
    stored = load_file(folder / LATENT_STATISTICS)
    return LatentScale(stored["latent_mean"][:, None, None], stored["latent_std"][:, None, None])


def write_glyph_latents(folder: Path, latents: Tensor) -> None:
    """`latents` is [N, C, h, w], standardised; eight bits are enough to tell the glyphs apart."""
    scale = latents.abs().max() / 127
    save_file({"latents": (latents / scale).round().to(torch.int8), "scale": scale}, folder / GLYPH_LATENTS)


def read_glyph_latents(folder: Path) -> Tensor:
    stored = load_file(folder / GLYPH_LATENTS)
    return stored["latents"].float() * stored["scale"]


def _write_network(network: SD3Transformer2DModel | AutoencoderDC, folder: Path) -> None:
    network.half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("_name_or_path", None)  # where a refined model was loaded from is nobody's business
    _write_json(config, folder / "config.json")


def _write_json(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
