"""Autoencoders between pixels in -1..1 and latents of their own scale, made of diffusers' classes.

They know no tiles (tiling.py) and no network's latent scale (families).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.diffusion.api import VaeRef
from runtime.diffusion.parts import Part, autoencoder_part, load_diffusers
from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import MissingFile, Unsupported


@dataclass(frozen=True, slots=True)
class AutoencoderKind:
    """`family` is "kl" or "dc"; `factor` is pixels per latent cell."""

    family: str
    channels: int
    factor: int


class KlAutoencoder:
    """AutoencoderKL; encoding takes the mode of the distribution, so that it needs no seed."""

    def __init__(self, module: Any, kind: AutoencoderKind) -> None:
        self.modules = (module,)
        self.channels = kind.channels
        self.factor = kind.factor
        self._module = module

    def encode(self, pixels: torch.Tensor) -> torch.Tensor:
        # [B, 3, H, W] -> [B, C, h, w]
        return self._module.encode(pixels.to(self._module.dtype)).latent_dist.mode().float()

    def decode(self, latent: torch.Tensor) -> torch.Tensor:
        # [B, C, h, w] -> [B, 3, H, W]
        return self._module.decode(latent.to(self._module.dtype), return_dict=False)[0].float()


class DcAutoencoder:
    """AutoencoderDC, the deep-compression kind; its latents are no distribution."""

    def __init__(self, module: Any, kind: AutoencoderKind) -> None:
        self.modules = (module,)
        self.channels = kind.channels
        self.factor = kind.factor
        self._module = module

    def encode(self, pixels: torch.Tensor) -> torch.Tensor:
        return self._module.encode(pixels.to(self._module.dtype), return_dict=False)[0].float()

    def decode(self, latent: torch.Tensor) -> torch.Tensor:
        return self._module.decode(latent.to(self._module.dtype), return_dict=False)[0].float()


def autoencoder_kind(part: Part) -> AutoencoderKind:
    """Told from a configuration or a header, without loading."""
    return _kind_by_config(part.config()) if part.is_folder else _kind_by_shapes(part)


def load_autoencoder(ref: VaeRef, dtype: torch.dtype, device: str) -> KlAutoencoder | DcAutoencoder:
    part = autoencoder_part(ref.weights)
    if part is None:
        raise MissingFile(f"{ref.weights} holds no autoencoder")
    kind = autoencoder_kind(part)
    # half precision overflows in the decoders of SD1.5 and SDXL
    dtype = torch.float32 if dtype == torch.float16 else dtype
    if kind.family == "dc":
        return DcAutoencoder(
            load_diffusers(part, "AutoencoderDC", _no_config, dtype=dtype, device=device), kind
        )
    return KlAutoencoder(load_diffusers(part, "AutoencoderKL", kl_config, dtype=dtype, device=device), kind)


def kl_config(shapes: Shapes) -> dict[str, Any]:
    """AutoencoderKL's configuration, from the tensors of the original or of diffusers' naming."""
    original = "encoder.down.0.block.0.conv2.weight" in shapes
    level, block = ("encoder.down", "block") if original else ("encoder.down_blocks", "resnets")
    channels = [
        shapes[f"{level}.{index}.{block}.0.conv2.weight"][0]
        for index in range(count_layers(shapes, f"{level}."))
    ]
    attention = ("decoder.mid.attn_1.q.weight", "decoder.mid_block.attentions.0.to_q.weight")
    return {
        "in_channels": shapes["encoder.conv_in.weight"][1],
        "out_channels": shapes["decoder.conv_out.weight"][0],
        "latent_channels": shapes["decoder.conv_in.weight"][1],
        "block_out_channels": channels,
        "down_block_types": ["DownEncoderBlock2D"] * len(channels),
        "up_block_types": ["UpDecoderBlock2D"] * len(channels),
        "layers_per_block": count_layers(shapes, f"{level}.0.{block}."),
        "use_quant_conv": "quant_conv.weight" in shapes,
        "use_post_quant_conv": "post_quant_conv.weight" in shapes,
        "mid_block_add_attention": any(name in shapes for name in attention),
    }


def _kind_by_config(config: Mapping[str, Any]) -> AutoencoderKind:
    name = config.get("_class_name")
    families = {
        "AutoencoderKL": ("kl", "block_out_channels"),
        "AutoencoderDC": ("dc", "encoder_block_out_channels"),
    }
    if name not in families:
        raise Unsupported(f"autoencoder {name} is not supported; supported: {', '.join(families)}")
    family, levels = families[name]
    try:
        return AutoencoderKind(family, int(config["latent_channels"]), 2 ** (len(config[levels]) - 1))
    except (KeyError, TypeError, ValueError) as error:
        raise Unsupported(f"the {name}'s configuration lacks a proper latent_channels or {levels}") from error


def _kind_by_shapes(part: Part) -> AutoencoderKind:
    shapes = part.shapes()
    levels = max(count_layers(shapes, "encoder.down."), count_layers(shapes, "encoder.down_blocks."))
    inlet = shapes.get("decoder.conv_in.weight", ())
    if len(inlet) != 4 or levels == 0 or "encoder.conv_in.weight" not in shapes:
        raise Unsupported(
            f"{part.path.name} holds no autoencoder that is known; supported in a file: AutoencoderKL"
        )
    return AutoencoderKind("kl", inlet[1], 2 ** (levels - 1))


def _no_config(_: Shapes) -> dict[str, Any]:
    raise Unsupported("an AutoencoderDC is loaded from a diffusers folder, not from a single file")
