"""Stable Diffusion 1.5, 2 and XL: UNet2DConditionModel with CLIP, ControlNet, inpainting; eps or v."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, ModelRef, SamplingOverride, TextEncoderRef, VaeRef
from runtime.diffusion.control import control_key, control_residuals
from runtime.diffusion.families.architecture import Architecture, LoadContext, Signature
from runtime.diffusion.families.base import Autoencoder, Cond, LatentFormat, Network, Prediction, TextEncoder
from runtime.diffusion.families.clip import load_clip_encoders
from runtime.diffusion.families.rows import (
    check_width,
    ends_in_pure_noise,
    latent_format_of,
    stack_pooled,
    stack_repeated_tokens,
    token_key,
)
from runtime.diffusion.families.unet_shapes import unet_config
from runtime.diffusion.parts import Part, load_diffusers, network_part
from runtime.diffusion.patch import LoraNaming, merge_loras
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.diffusion.text import ClipEncoder, ClipUse, encode_side_by_side
from runtime.diffusion.vae import load_autoencoder
from runtime.platform.checkpoint import read_tensors
from runtime.platform.errors import Unsupported

_TELLING_BIAS = "output_blocks.11.1.transformer_blocks.0.norm1.bias"
_SPREAD_OF_V = 0.09


@dataclass(frozen=True, slots=True)
class _Generation:
    """What differs between the generations: the latent's scale, the encoders and how LoRAs are spelled."""

    scale: float
    uses: dict[str, ClipUse]
    naming: LoraNaming
    cross_width: int


_SD15 = _Generation(
    0.18215, {"clip_l": ClipUse(-1, True, True)}, LoraNaming("StableDiffusionLoraLoaderMixin"), 768
)
_SD2 = _Generation(
    0.18215,
    {"clip_h": ClipUse(-1, True, False, dropped_layers=1)},
    LoraNaming("StableDiffusionLoraLoaderMixin"),
    1024,
)
_SDXL = _Generation(
    0.13025,
    {"clip_l": ClipUse(-2, False, True), "clip_g": ClipUse(-2, False, False)},
    LoraNaming("StableDiffusionXLLoraLoaderMixin", takes_unet_config=True),
    2048,
)


class UnetNetwork:
    """A UNet with what SDXL is told besides the prompt, and with residuals of ControlNets."""

    def __init__(self, module: Any, context: LoadContext, factor: int) -> None:
        self.modules = (module,)
        self.dtype: torch.dtype = module.dtype
        self._module = module
        self._context = context
        self._factor = factor

    def cond_key(self, cond: Cond) -> Hashable:
        return token_key(cond), control_key(cond)

    @torch.inference_mode()
    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        check_width(conds, self._module.config.cross_attention_dim)
        latent = x.to(self.dtype)
        timestep = timestep.to(x.device)
        tokens = stack_repeated_tokens(conds, latent)
        added = self._added(latent, conds)
        residuals = control_residuals(self._context.control_net, latent, timestep, tokens, added, conds)
        down, middle = residuals or (None, None)
        answer = self._module(
            self._with_concat(latent, conds),
            timestep,
            encoder_hidden_states=tokens,
            added_cond_kwargs=added,
            down_block_additional_residuals=down,
            mid_block_additional_residual=middle,
            return_dict=False,
        )[0]
        return answer.to(x.dtype)

    def _with_concat(self, latent: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        """Inpainting models take the mask and the masked picture's latent as further channels."""
        further = self._module.config.in_channels - latent.shape[1]
        given = [0 if cond.concat is None else cond.concat.shape[1] for cond in conds]
        if any(count != further for count in given):
            raise Unsupported(
                f"this model takes {further} channels besides the latent's {latent.shape[1]}, the "
                f"conditioning has {max(given)}" + ("; use InpaintModelConditioning" if further == 5 else "")
            )
        if further == 0:
            return latent
        return torch.cat(
            [latent, torch.cat([cond.concat for cond in conds if cond.concat is not None]).to(latent)], 1
        )

    def _added(self, latent: torch.Tensor, conds: Sequence[Cond]) -> dict[str, torch.Tensor] | None:
        if self._module.config.addition_embed_type != "text_time":
            return None
        config = self._module.config
        width = config.projection_class_embeddings_input_dim - 6 * config.addition_time_embed_dim
        height_px, width_px = latent.shape[-2] * self._factor, latent.shape[-1] * self._factor
        ids = torch.tensor([_time_ids(cond, height_px, width_px) for cond in conds])
        return {
            "text_embeds": stack_pooled(conds, width, latent),
            "time_ids": ids.to(latent.device, latent.dtype),
        }


class SideBySideClip:
    """SD's one CLIP, or SDXL's two side by side; the last one's pooled state counts."""

    def __init__(self, encoders: dict[str, ClipEncoder]) -> None:
        self.modules = tuple(module for encoder in encoders.values() for module in encoder.modules)
        self._encoders = encoders

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        """A tuple of two texts is SDXL's: for CLIP G, for CLIP L."""
        own = [[text[-1] if role == "clip_l" else text[0] for text in texts] for role in self._encoders]
        answers = encode_side_by_side(list(self._encoders.values()), own)
        return [
            [[torch.cat([tokens for tokens, _ in parts], dim=-1), {"pooled_output": parts[-1][1]}]]
            for parts in answers
        ]


@dataclass(slots=True)
class UnetFamily:
    """One generation with one kind of prediction."""

    name: str
    prediction: Prediction
    generation: _Generation
    context: LoadContext

    def latent_format(self, ref: ModelRef) -> LatentFormat:
        default = LatentFormat(4, 8, scale=self.generation.scale)
        return latent_format_of(ref.weights, default, self.context.device)

    def schedule(self, ref: ModelRef, override: SamplingOverride | None) -> NoiseSchedule:
        zero_terminal_snr = override.zero_terminal_snr if override else ends_in_pure_noise(ref.weights)
        return NoiseSchedule.discrete(zero_terminal_snr=zero_terminal_snr)

    def load_network(self, ref: ModelRef) -> Network:
        part = network_part(ref.weights)
        assert part is not None, ref
        module = load_diffusers(
            part, "UNet2DConditionModel", unet_config, dtype=self.context.dtype, device=self.context.device
        )
        merge_loras(module, ref.loras, self.generation.naming, "unet", unet=module)
        return UnetNetwork(module, self.context, self.latent_format(ref).factor)

    def load_text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        generation = self.generation
        return SideBySideClip(load_clip_encoders(ref, generation.uses, generation.naming, self.context))

    def load_autoencoder(self, ref: VaeRef) -> Autoencoder:
        return load_autoencoder(ref, self.context.dtype, self.context.device)


def _time_ids(cond: Cond, height: int, width: int) -> list[float]:
    """Sizes in pixels that SDXL was trained to see: original, crop, target. Each as (height, width)."""
    told = cond.extra
    height, width = told.get("height", height), told.get("width", width)
    return [
        float(value)
        for value in (
            height,
            width,
            told.get("crop_h", 0),
            told.get("crop_w", 0),
            told.get("target_height", height),
            told.get("target_width", width),
        )
    ]


def _signature(generation: _Generation, marks: tuple[str, ...] = ()) -> Signature:
    block = {768: "input_blocks.1.1", 1024: "input_blocks.1.1", 2048: "input_blocks.4.1"}[
        generation.cross_width
    ]
    key = f"{block}.transformer_blocks.0.attn2.to_k.weight"
    present: dict[str, tuple[int | None, ...] | None] = {
        "input_blocks.0.0.weight": None,
        "out.2.weight": None,
    }
    present |= {key: (None, generation.cross_width)} | dict.fromkeys(marks)
    if generation is _SDXL:
        present["label_emb.0.0.weight"] = None
    return Signature(present)


def _was_trained_on_v(network: Part) -> bool:
    """SD2 files carry no mark, but v training left this bias of the last transformer with a wider spread."""
    biases = read_tensors(network.path, f"{network.prefix}{_TELLING_BIAS}")
    return any(bias.float().std(correction=0) > _SPREAD_OF_V for bias in biases.values())


def _architecture(name: str, generation: _Generation, prediction: Prediction, **facts: Any) -> Architecture:
    spelled = {"v": {"prediction_type": "v_prediction"}, "eps": {}, "flow": {}}[prediction]
    marked = prediction == "v"
    return Architecture(
        name=name,
        facts={"_class_name": "UNet2DConditionModel", **facts, **spelled},
        signatures=(_signature(generation, ("v_pred",) if marked and generation is not _SD2 else ()),),
        encoders=tuple(generation.uses),
        create=partial(UnetFamily, name, prediction, generation),
        measure=_was_trained_on_v if name == "sd2_v" else None,
        clip_kinds=() if marked else {"sd15": ("stable_diffusion",), "sdxl": ("sdxl",)}.get(name, ()),
    )


# the narrower description comes first
ARCHITECTURES = (
    _architecture("sdxl_v", _SDXL, "v", addition_embed_type="text_time"),
    _architecture("sdxl", _SDXL, "eps", addition_embed_type="text_time"),
    _architecture("sd2_v", _SD2, "v", cross_attention_dim=1024),
    _architecture("sd2", _SD2, "eps", cross_attention_dim=1024),
    _architecture("sd15_v", _SD15, "v"),
    _architecture("sd15", _SD15, "eps"),
)
