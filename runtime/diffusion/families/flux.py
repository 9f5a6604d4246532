"""FLUX.1 dev and schnell: FluxTransformer2DModel over latents packed 2 x 2.

Prompts are read by T5; CLIP L adds its pooled state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, ModelRef, SamplingOverride, TextEncoderRef, VaeRef
from runtime.diffusion.encoders import load_tokenizer
from runtime.diffusion.families.architecture import Architecture, LoadContext, Signature
from runtime.diffusion.families.base import Autoencoder, Cond, LatentFormat, Network, Prediction, TextEncoder
from runtime.diffusion.families.clip import encoders_by_role, load_clip, load_module
from runtime.diffusion.families.rows import (
    check_width,
    latent_format_of,
    pad_to_patches,
    refuse_controls,
    stack_pooled,
    stack_tokens,
)
from runtime.diffusion.parts import load_diffusers, network_part
from runtime.diffusion.patch import LoraNaming, merge_loras
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.diffusion.text import ClipEncoder, ClipUse, T5Encoder
from runtime.diffusion.vae import load_autoencoder
from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import MissingFile, Unsupported

_ROLES = ("clip_l", "t5")
_CLIP = ClipUse(-1, True, True)
_T5_TOKENS = 256
_GUIDANCE = 3.5
_AXES = (16, 56, 56)
_NAMING = LoraNaming("FluxLoraLoaderMixin")


class FluxNetwork:
    """Guidance is an input of the network, so a request with cfg 1 costs one row."""

    def __init__(self, module: Any) -> None:
        self.modules = (module,)
        self.dtype: torch.dtype = module.dtype
        self._module = module

    def cond_key(self, cond: Cond) -> Hashable:
        return cond.tokens.shape[1]

    @torch.inference_mode()
    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        config = self._module.config
        refuse_controls(conds, "FLUX")
        check_width(conds, config.joint_attention_dim)
        height, width = x.shape[-2:]
        latent = pad_to_patches(x.to(self.dtype), 2)
        rows, columns = latent.shape[-2] // 2, latent.shape[-1] // 2
        tokens = stack_tokens(conds, latent)
        guidance = [_GUIDANCE if cond.guidance is None else cond.guidance for cond in conds]
        answer = self._module(
            hidden_states=pack(latent),
            encoder_hidden_states=tokens,
            pooled_projections=stack_pooled(conds, config.pooled_projection_dim, latent),
            timestep=timestep.to(latent.device, latent.dtype),
            guidance=torch.tensor(guidance, device=latent.device, dtype=latent.dtype)
            if config.guidance_embeds
            else None,
            img_ids=_places(rows, columns).to(latent.device, latent.dtype),
            txt_ids=torch.zeros(tokens.shape[1], 3, device=latent.device, dtype=latent.dtype),
            return_dict=False,
        )[0]
        return unpack(answer, rows, columns)[..., :height, :width].to(x.dtype)


class FluxText:
    """T5's tokens and CLIP L's pooled state; without CLIP L the latter is zeros."""

    def __init__(self, clip: ClipEncoder | None, t5: T5Encoder) -> None:
        self.modules = (*(clip.modules if clip else ()), *t5.modules)
        self._clip = clip
        self._t5 = t5

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        """A tuple of two texts is for CLIP L and for T5."""
        tokens = self._t5.encode([text[-1] for text in texts])
        pooled = [torch.zeros(1, 768)] * len(texts)
        if self._clip is not None:
            chunks = [self._clip.chunks(text[0])[:1] for text in texts]
            pooled = [state for _, state in self._clip.encode(chunks)]
        return [[[row, {"pooled_output": state}]] for row, state in zip(tokens, pooled)]


@dataclass(slots=True)
class FluxFamily:
    """`is_guided` tells dev from schnell, which was trained on unshifted levels."""

    name: str
    is_guided: bool
    context: LoadContext
    prediction: Prediction = "flow"

    def latent_format(self, ref: ModelRef) -> LatentFormat:
        default = LatentFormat(16, 8, scale=0.3611, shift=0.1159)
        return latent_format_of(ref.weights, default, self.context.device)

    def schedule(self, ref: ModelRef, override: SamplingOverride | None) -> NoiseSchedule:  # noqa: ARG002
        shift = override.shift if override else None
        if self.is_guided:
            return NoiseSchedule.flux(1.15 if shift is None else shift)
        return NoiseSchedule.flow(1.0 if shift is None else shift, multiplier=1.0)

    def load_network(self, ref: ModelRef) -> Network:
        part = network_part(ref.weights)
        assert part is not None, ref
        module = load_diffusers(
            part,
            "FluxTransformer2DModel",
            transformer_config,
            dtype=self.context.dtype,
            device=self.context.device,
        )
        merge_loras(module, ref.loras, _NAMING, "transformer")
        return FluxNetwork(module)

    def load_text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        found = encoders_by_role(ref, _ROLES)
        if "t5" not in found:
            raise MissingFile(
                f"FLUX needs the text encoder T5, which is not in {', '.join(p.name for p in ref.weights)}"
            )
        clip = None
        if "clip_l" in found:
            clip = load_clip(ref, found["clip_l"], _CLIP, _ROLES, _NAMING, self.context)
        module = load_module(ref, found["t5"], _ROLES, _NAMING, self.context)
        return FluxText(clip, T5Encoder(module, load_tokenizer(found["t5"]), _T5_TOKENS))

    def load_autoencoder(self, ref: VaeRef) -> Autoencoder:
        return load_autoencoder(ref, self.context.dtype, self.context.device)


def pack(latent: torch.Tensor) -> torch.Tensor:
    """[R, C, 2h, 2w] -> [R, h w, 4 C]: each token holds a square of four cells."""
    rows, channels, height, width = latent.shape
    squares = latent.reshape(rows, channels, height // 2, 2, width // 2, 2)
    return squares.permute(0, 2, 4, 1, 3, 5).reshape(rows, height * width // 4, channels * 4)


def unpack(tokens: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """[R, h w, 4 C] -> [R, C, 2h, 2w]."""
    rows, _, channels = tokens.shape
    squares = tokens.reshape(rows, height, width, channels // 4, 2, 2)
    return squares.permute(0, 3, 1, 4, 2, 5).reshape(rows, channels // 4, height * 2, width * 2)


def transformer_config(shapes: Shapes) -> dict[str, Any]:
    """FluxTransformer2DModel's configuration from the original names' shapes."""
    if "img_in.weight" not in shapes:
        raise Unsupported(
            "a FLUX transformer in diffusers' naming is loaded from its folder with config.json"
        )
    width, channels = shapes["img_in.weight"]
    head = shapes["double_blocks.0.img_attn.norm.query_norm.scale"][0]
    if sum(_AXES) != head:
        raise Unsupported(f"this FLUX variant has attention heads of width {head}; supported: {sum(_AXES)}")
    return {
        "patch_size": 1,
        "in_channels": channels,
        "out_channels": shapes["final_layer.linear.weight"][0],
        "num_layers": count_layers(shapes, "double_blocks."),
        "num_single_layers": count_layers(shapes, "single_blocks."),
        "attention_head_dim": head,
        "num_attention_heads": width // head,
        "joint_attention_dim": shapes["txt_in.weight"][1],
        "pooled_projection_dim": shapes["vector_in.in_layer.weight"][1],
        "guidance_embeds": "guidance_in.in_layer.weight" in shapes,
        "axes_dims_rope": list(_AXES),
    }


def _places(rows: int, columns: int) -> torch.Tensor:
    """[h w, 3]: the row and the column of each token, after a zero."""
    places = torch.zeros(rows, columns, 3)
    places[..., 1] = torch.arange(rows)[:, None]
    places[..., 2] = torch.arange(columns)[None, :]
    return places.reshape(-1, 3)


_FLUX_KEYS = {
    "double_blocks.0.img_attn.norm.query_norm.scale": None,
    "img_in.weight": (None, 64),
    "txt_in.weight": None,
}

ARCHITECTURES = (
    Architecture(
        name="flux",
        facts={"_class_name": "FluxTransformer2DModel", "guidance_embeds": True},
        signatures=(
            Signature({**_FLUX_KEYS, "guidance_in.in_layer.weight": None, "vector_in.in_layer.weight": None}),
        ),
        encoders=_ROLES,
        create=partial(FluxFamily, "flux", True),
        clip_kinds=("flux",),
    ),
    Architecture(
        name="flux_schnell",
        facts={"_class_name": "FluxTransformer2DModel"},
        signatures=(Signature({**_FLUX_KEYS, "vector_in.in_layer.weight": None}),),
        encoders=_ROLES,
        create=partial(FluxFamily, "flux_schnell", False),
    ),
)
