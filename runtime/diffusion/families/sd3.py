"""Stable Diffusion 3 and 3.5, and the embedded glyph model: SD3Transformer2DModel, flow matching.

SD3 reads prompts with CLIP L, CLIP G and T5, of which some may be missing; the glyph model with its
LanguageFeatures.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

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
    shift_of,
    stack_pooled,
    stack_tokens,
)
from runtime.diffusion.language_features import load_language_features
from runtime.diffusion.parts import load_diffusers, network_part
from runtime.diffusion.patch import LoraNaming, merge_loras
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.diffusion.text import ClipEncoder, ClipUse, T5Encoder, encode_side_by_side
from runtime.diffusion.vae import load_autoencoder
from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import MissingFile, Unsupported

_ROLES = ("clip_l", "clip_g", "t5")
_USES = {"clip_l": ClipUse(-2, False, True), "clip_g": ClipUse(-2, False, False)}
_POOLED = {"clip_l": 768, "clip_g": 1280}
_WIDTH = 4096
_T5_TOKENS = 77
_HEAD = 64
_NAMING = LoraNaming("SD3LoraLoaderMixin")


class Sd3Network:
    """Rows need tokens of the same count and width."""

    def __init__(self, module: Any, factor: int) -> None:
        self.modules = (module,)
        self.dtype: torch.dtype = module.dtype
        self._module = module
        self._factor = factor

    def cond_key(self, cond: Cond) -> Hashable:
        return cond.tokens.shape[1]

    @torch.inference_mode()
    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        config = self._module.config
        refuse_controls(conds, "SD3")
        check_width(conds, config.joint_attention_dim)
        height, width = x.shape[-2:]
        limit = config.pos_embed_max_size * config.patch_size
        if max(height, width) > limit:
            most, asked = limit * self._factor, [width * self._factor, height * self._factor]
            raise Unsupported(f"this model draws at most {most} x {most} pixels, not {asked[0]} x {asked[1]}")
        latent = pad_to_patches(x.to(self.dtype), config.patch_size)
        answer = self._module(
            hidden_states=latent,
            encoder_hidden_states=stack_tokens(conds, latent),
            pooled_projections=stack_pooled(conds, config.pooled_projection_dim, latent),
            timestep=timestep.to(x.device),
            return_dict=False,
        )[0]
        return answer[..., :height, :width].to(x.dtype)


class Sd3Text:
    """CLIP L and G side by side, padded to T5's width, then T5's tokens. A missing CLIP counts as zeros."""

    def __init__(self, clips: dict[str, ClipEncoder], t5: T5Encoder | None) -> None:
        parts: list[ClipEncoder | T5Encoder] = [*clips.values(), *([t5] if t5 else [])]
        self.modules = tuple(module for part in parts for module in part.modules)
        self._clips = clips
        self._t5 = t5

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        """Up to three texts: for CLIP L, CLIP G and T5; fewer repeat the last."""
        own = [[text[min(place, len(text) - 1)] for text in texts] for place in range(len(self._clips))]
        answers = encode_side_by_side(list(self._clips.values()), own) or [[] for _ in texts]
        heads = [self._join(dict(zip(self._clips, of_text))) for of_text in answers]
        tails = self._t5.encode([text[-1] for text in texts]) if self._t5 else [None] * len(texts)
        results: list[Conditioning] = []
        for (tokens, pooled), tail in zip(heads, tails):
            parts = [part for part in (tokens, tail) if part is not None]
            results.append([[torch.cat(parts, dim=1), {"pooled_output": pooled}]])
        return results

    def _join(
        self, answers: dict[str, tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        pooled = [answers[role][1] if role in answers else torch.zeros(1, _POOLED[role]) for role in _USES]
        if not answers:
            return None, torch.cat(pooled, dim=-1)
        count = next(iter(answers.values()))[0].shape[1]
        tokens = [
            answers[role][0] if role in answers else torch.zeros(1, count, _POOLED[role]) for role in _USES
        ]
        joined = torch.cat(tokens, dim=-1)
        width = _WIDTH if self._t5 is None else self._t5.width
        return F.pad(joined, (0, width - joined.shape[-1])), torch.cat(pooled, dim=-1)


@dataclass(slots=True)
class Sd3Family:
    context: LoadContext
    name: str = "sd3"
    prediction: Prediction = "flow"

    def latent_format(self, ref: ModelRef) -> LatentFormat:
        default = LatentFormat(16, 8, scale=1.5305, shift=0.0609)
        return latent_format_of(ref.weights, default, self.context.device)

    def schedule(self, ref: ModelRef, override: SamplingOverride | None) -> NoiseSchedule:
        shift = override.shift if override and override.shift is not None else shift_of(ref.weights, 3.0)
        return NoiseSchedule.flow(shift)

    def load_network(self, ref: ModelRef) -> Network:
        part = network_part(ref.weights)
        assert part is not None, ref
        module = load_diffusers(
            part,
            "SD3Transformer2DModel",
            transformer_config,
            dtype=self.context.dtype,
            device=self.context.device,
        )
        merge_loras(module, ref.loras, _NAMING, "transformer")
        return Sd3Network(module, self.latent_format(ref).factor)

    def load_text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        found = encoders_by_role(ref, _ROLES)
        if "language_features" in found:
            if ref.loras:
                raise Unsupported(
                    "a LoRA cannot change the language model that the glyph model reads prompts with"
                )
            folder = found["language_features"].part.path
            models = self.context.language_models()
            return load_language_features(folder, models, self.context.dtype, self.context.device)
        if not found:
            raise MissingFile("SD3 needs at least one of the text encoders CLIP L, CLIP G and T5")
        clips = {
            role: load_clip(ref, found[role], use, _ROLES, _NAMING, self.context)
            for role, use in _USES.items()
            if role in found
        }
        return Sd3Text(clips, self._load_t5(ref, found) if "t5" in found else None)

    def load_autoencoder(self, ref: VaeRef) -> Autoencoder:
        return load_autoencoder(ref, self.context.dtype, self.context.device)

    def _load_t5(self, ref: TextEncoderRef, found: dict[str, Any]) -> T5Encoder:
        module = load_module(ref, found["t5"], _ROLES, _NAMING, self.context)
        return T5Encoder(module, load_tokenizer(found["t5"]), _T5_TOKENS)


def transformer_config(shapes: Shapes) -> dict[str, Any]:
    """SD3Transformer2DModel's configuration from the original names' shapes."""
    if "joint_blocks.0.x_block.attn.qkv.weight" not in shapes:
        raise Unsupported(
            "an SD3 transformer in diffusers' naming is loaded from its folder with config.json"
        )
    width, channels, patch, _ = shapes["x_embedder.proj.weight"]
    layers = count_layers(shapes, "joint_blocks.")
    return {
        "sample_size": 128,
        "patch_size": patch,
        "in_channels": channels,
        "out_channels": shapes["final_layer.linear.weight"][0] // patch**2,
        "num_layers": layers,
        "attention_head_dim": _HEAD,
        "num_attention_heads": width // _HEAD,
        "joint_attention_dim": shapes["context_embedder.weight"][1],
        "caption_projection_dim": shapes["context_embedder.weight"][0],
        "pooled_projection_dim": shapes["y_embedder.mlp.0.weight"][1],
        "pos_embed_max_size": round(shapes["pos_embed"][1] ** 0.5),
        "dual_attention_layers": [
            layer for layer in range(layers) if f"joint_blocks.{layer}.x_block.attn2.qkv.weight" in shapes
        ],
        "qk_norm": "rms_norm" if "joint_blocks.0.x_block.attn.ln_q.weight" in shapes else None,
    }


ARCHITECTURES = (
    Architecture(
        name="sd3",
        facts={"_class_name": "SD3Transformer2DModel"},
        signatures=(Signature({"joint_blocks.0.context_block.attn.qkv.weight": None, "pos_embed": None}),),
        encoders=_ROLES,
        create=Sd3Family,
        clip_kinds=("sd3",),
    ),
)
