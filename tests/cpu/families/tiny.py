"""Tiny random diffusers pipelines of each family, saved to folders as a user's would be."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
    T5Config,
    T5EncoderModel,
)

from runtime.diffusion.encoders import packaged_clip_tokenizer

diffusers = importlib.import_module("diffusers")
torch.set_num_threads(1)

LATENT = (8, 12)


def randomised(module: Any) -> Any:
    """diffusers starts some layers at zero or leaves them empty, which would hide mistakes."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        if parameter.isnan().any() or parameter.abs().max() == 0 or parameter.abs().max() > 1e3:
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.05
    return module.eval()


def autoencoder(channels: int, **config: Any) -> Any:
    return randomised(
        diffusers.AutoencoderKL(
            block_out_channels=(32, 64),
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            layers_per_block=1,
            latent_channels=channels,
            **config,
        )
    )


def clip(width: int, *, projected: bool = False) -> Any:
    config = CLIPTextConfig(
        vocab_size=49408,
        hidden_size=width,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=max(1, width // 64),
        projection_dim=width,
        eos_token_id=49407,
        bos_token_id=49406,
        pad_token_id=1,
        hidden_act="gelu" if projected else "quick_gelu",
    )
    return randomised((CLIPTextModelWithProjection if projected else CLIPTextModel)(config))


def clip_tokenizer(pad: str = "<|endoftext|>") -> Any:
    tokenizer = packaged_clip_tokenizer()
    tokenizer.pad_token = pad
    tokenizer.model_max_length = 77
    return tokenizer


def word_tokenizer(end: str | None) -> PreTrainedTokenizerFast:
    """Whole words; `end` is appended to each text as T5 does."""
    words = [
        "<pad>",
        "</s>",
        "<unk>",
        "a",
        "cat",
        "red",
        "house",
        "on",
        "the",
        "hill",
        "<|im_start|>",
        "<|im_end|>",
        "user",
        "assistant",
    ]
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if end:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {end}", special_tokens=[(end, 1)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=512,
    )


def t5(width: int) -> Any:
    config = T5Config(
        vocab_size=32,
        d_model=width,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        feed_forward_proj="gated-gelu",
        is_encoder_decoder=False,
        use_cache=False,
    )
    return randomised(T5EncoderModel(config))


def qwen3(width: int) -> Any:
    config = Qwen3Config(
        vocab_size=32,
        hidden_size=width,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    return randomised(Qwen3Model(config))


def sd15_unet(**config: Any) -> Any:
    return randomised(
        diffusers.UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            attention_head_dim=8,
            **config,
        )
    )


def sdxl_unet(cross_width: int) -> Any:
    return randomised(
        diffusers.UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(64, 128),
            layers_per_block=2,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=cross_width,
            attention_head_dim=(1, 2),
            transformer_layers_per_block=(1, 2),
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=32 + 6 * 256,
        )
    )


def sd15(cross_width: int = 32) -> Any:
    return diffusers.StableDiffusionPipeline(
        vae=autoencoder(4, scaling_factor=0.18215),
        text_encoder=clip(32),
        tokenizer=clip_tokenizer(),
        unet=sd15_unet(cross_attention_dim=cross_width),
        scheduler=diffusers.EulerDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def sdxl(cross_width: int = 64) -> Any:
    return diffusers.StableDiffusionXLPipeline(
        vae=autoencoder(4, scaling_factor=0.13025),
        text_encoder=clip(32),
        text_encoder_2=clip(32, projected=True),
        tokenizer=clip_tokenizer(),
        tokenizer_2=clip_tokenizer(pad="!"),
        unet=sdxl_unet(cross_width),
        scheduler=diffusers.EulerDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
        ),
        force_zeros_for_empty_prompt=False,
        add_watermarker=False,
    )


def sd3_transformer() -> Any:
    return randomised(
        diffusers.SD3Transformer2DModel(
            sample_size=16,
            patch_size=2,
            in_channels=4,
            out_channels=4,
            num_layers=2,
            attention_head_dim=64,
            num_attention_heads=1,
            joint_attention_dim=128,
            caption_projection_dim=64,
            pooled_projection_dim=64,
            pos_embed_max_size=16,
        )
    )


def sd3() -> Any:
    return diffusers.StableDiffusion3Pipeline(
        vae=autoencoder(4, scaling_factor=1.5305, shift_factor=0.0609),
        text_encoder=clip(32, projected=True),
        text_encoder_2=clip(32, projected=True),
        text_encoder_3=t5(128),
        tokenizer=clip_tokenizer(),
        tokenizer_2=clip_tokenizer(pad="!"),
        tokenizer_3=word_tokenizer("</s>"),
        transformer=sd3_transformer(),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
    )


def flux_transformer(**config: Any) -> Any:
    return randomised(
        diffusers.FluxTransformer2DModel(
            patch_size=1,
            in_channels=16,
            num_layers=1,
            num_single_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=48,
            pooled_projection_dim=32,
            guidance_embeds=True,
            axes_dims_rope=[4, 4, 8],
            **config,
        )
    )


def flux() -> Any:
    return diffusers.FluxPipeline(
        vae=autoencoder(4, scaling_factor=0.3611, shift_factor=0.1159),
        text_encoder=clip(32),
        text_encoder_2=t5(48),
        tokenizer=clip_tokenizer(),
        tokenizer_2=word_tokenizer("</s>"),
        transformer=flux_transformer(),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True),
    )


def z_image_transformer(**config: Any) -> Any:
    return randomised(
        diffusers.ZImageTransformer2DModel(
            all_patch_size=(2,),
            all_f_patch_size=(1,),
            in_channels=4,
            n_layers=2,
            n_refiner_layers=1,
            cap_feat_dim=16,
            **config,
        )
    )


def z_image() -> Any:
    return diffusers.ZImagePipeline(
        vae=autoencoder(4, scaling_factor=0.3611, shift_factor=0.1159),
        text_encoder=qwen3(16),
        tokenizer=word_tokenizer(None),
        transformer=z_image_transformer(
            dim=48, n_heads=3, n_kv_heads=3, axes_dims=[8, 4, 4], axes_lens=[1024, 32, 32]
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
    )


# the wide ones take conditionings of the real widths, by which single files are told apart
PIPELINES: dict[str, Callable[[], Any]] = {
    "sd15_wide": lambda: sd15(768),
    "sdxl_wide": lambda: sdxl(2048),
    "sd15": sd15,
    "sdxl": sdxl,
    "sd3": sd3,
    "flux": flux,
    "z_image": z_image,
}


def save(pipeline: Any, folder: Path) -> Path:
    pipeline.save_pretrained(folder)
    return folder
