"""Z-Image: ZImageTransformer2DModel, which takes rows as lists, so texts of any length share a forward.

Prompts are read by Qwen3. The network's time runs from noise (0) to picture (1); its answer points backwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, ModelRef, SamplingOverride, TextEncoderRef, VaeRef
from runtime.diffusion.encoders import cut_after_layer, load_tokenizer
from runtime.diffusion.families.architecture import Architecture, LoadContext, Signature
from runtime.diffusion.families.base import Autoencoder, Cond, LatentFormat, Network, Prediction, TextEncoder
from runtime.diffusion.families.clip import encoders_by_role, load_module
from runtime.diffusion.families.rows import (
    check_width,
    latent_format_of,
    pad_to_patches,
    refuse_controls,
    shift_of,
)
from runtime.diffusion.parts import load_diffusers, network_part
from runtime.diffusion.patch import LoraNaming, merge_loras
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.diffusion.text import ChatEncoder
from runtime.diffusion.vae import load_autoencoder
from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import MissingFile, Unsupported

_ROLES = ("qwen3",)
_TEMPLATE = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
_HIDDEN_LAYER = -2
_MAX_TOKENS = 512
_PATCH = 2
_AXES = [32, 48, 48]
_NAMING = LoraNaming("ZImageLoraLoaderMixin")


class ZImageNetwork:
    def __init__(self, module: Any) -> None:
        self.modules = (module,)
        self.dtype: torch.dtype = module.dtype
        self._module = module

    def cond_key(self, cond: Cond) -> Hashable:  # noqa: ARG002
        return None

    @torch.inference_mode()
    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        refuse_controls(conds, "Z-Image")
        check_width(conds, self._module.config.cap_feat_dim)
        height, width = x.shape[-2:]
        latent = pad_to_patches(x.to(self.dtype), _PATCH)
        answer = self._module(
            list(latent[:, :, None].unbind(0)),
            (1 - timestep).to(latent.device),
            [cond.tokens[0].to(latent.device, latent.dtype) for cond in conds],
            return_dict=False,
        )[0]
        # each [C, 1, h, w]
        return -torch.stack(answer)[:, :, 0, :height, :width].to(x.dtype)


class ZImageText:
    """The last hidden layer but one of Qwen3 over the prompt as a user's turn."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self.modules = encoder.modules
        self._encoder = encoder

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        return [[[tokens, {}]] for tokens in self._encoder.encode([text[0] for text in texts])]


@dataclass(slots=True)
class ZImageFamily:
    context: LoadContext
    name: str = "z_image"
    prediction: Prediction = "flow"

    def latent_format(self, ref: ModelRef) -> LatentFormat:
        default = LatentFormat(16, 8, scale=0.3611, shift=0.1159)
        return latent_format_of(ref.weights, default, self.context.device)

    def schedule(self, ref: ModelRef, override: SamplingOverride | None) -> NoiseSchedule:
        shift = override.shift if override and override.shift is not None else shift_of(ref.weights, 3.0)
        return NoiseSchedule.flow(shift, multiplier=1.0)

    def load_network(self, ref: ModelRef) -> Network:
        part = network_part(ref.weights)
        assert part is not None, ref
        module = load_diffusers(
            part,
            "ZImageTransformer2DModel",
            transformer_config,
            dtype=self.context.dtype,
            device=self.context.device,
        )
        merge_loras(module, ref.loras, _NAMING, "transformer")
        return ZImageNetwork(module)

    def load_text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        found = encoders_by_role(ref, _ROLES)
        if "qwen3" not in found:
            names = ", ".join(path.name for path in ref.weights)
            raise MissingFile(f"Z-Image needs the text encoder Qwen3, which is not in {names}")
        module = load_module(ref, found["qwen3"], _ROLES, _NAMING, self.context)
        module = cut_after_layer(module, _HIDDEN_LAYER)
        return ZImageText(ChatEncoder(module, load_tokenizer(found["qwen3"]), _TEMPLATE, _MAX_TOKENS))

    def load_autoencoder(self, ref: VaeRef) -> Autoencoder:
        return load_autoencoder(ref, self.context.dtype, self.context.device)


def transformer_config(shapes: Shapes) -> dict[str, Any]:
    """ZImageTransformer2DModel's configuration from the original names' shapes, or diffusers' own."""
    embedder = "x_embedder.weight" if "x_embedder.weight" in shapes else f"all_x_embedder.{_PATCH}-1.weight"
    norm = "q_norm" if "x_embedder.weight" in shapes else "norm_q"
    width, inputs = shapes[embedder]
    head = shapes[f"layers.0.attention.{norm}.weight"][0]
    if head != sum(_AXES):
        raise Unsupported(
            f"this Z-Image variant has attention heads of width {head}; supported: {sum(_AXES)}"
        )
    return {
        "in_channels": inputs // _PATCH**2,
        "dim": width,
        "n_layers": count_layers(shapes, "layers."),
        "n_refiner_layers": count_layers(shapes, "noise_refiner."),
        "n_heads": width // head,
        "n_kv_heads": width // head,
        "cap_feat_dim": shapes["cap_embedder.0.weight"][0],
        "axes_dims": _AXES,
        "axes_lens": [1536, 512, 512],
    }


ARCHITECTURES = (
    Architecture(
        name="z_image",
        facts={"_class_name": "ZImageTransformer2DModel"},
        signatures=(
            Signature(
                {
                    "cap_embedder.0.weight": None,
                    "noise_refiner.0.attention.qkv.weight": None,
                    "x_pad_token": None,
                }
            ),
            Signature({"cap_embedder.0.weight": None, "noise_refiner.0.attention.to_q.weight": None}),
        ),
        encoders=_ROLES,
        create=ZImageFamily,
        clip_kinds=("z_image", "lumina2", "qwen_image"),
    ),
)
