"""Published configurations follow from the shapes in files; modules without memory stand for weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from runtime.diffusion.families import flux, sd3, z_image
from runtime.diffusion.families.unet_shapes import unet_config
from runtime.diffusion.vae import kl_config
from runtime.platform.checkpoint import Shapes
from tests.cpu.families import original

diffusers = importlib.import_module("diffusers")
converters = importlib.import_module("diffusers.loaders.single_file_utils")

SD15 = {"cross_attention_dim": 768, "attention_head_dim": 8}
SD2 = {"cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], "use_linear_projection": True}
SDXL = {
    "block_out_channels": [320, 640, 1280],
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "transformer_layers_per_block": [1, 2, 10],
    "attention_head_dim": [5, 10, 20],
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
SD3_MEDIUM = {
    "num_layers": 24,
    "num_attention_heads": 24,
    "caption_projection_dim": 1536,
    "pos_embed_max_size": 192,
}
SD35_MEDIUM = {
    **SD3_MEDIUM,
    "pos_embed_max_size": 384,
    "qk_norm": "rms_norm",
    "dual_attention_layers": list(range(13)),
}
SD35_LARGE = {
    "num_layers": 38,
    "num_attention_heads": 38,
    "caption_projection_dim": 2432,
    "pos_embed_max_size": 192,
    "qk_norm": "rms_norm",
}
KL16 = {
    "latent_channels": 16,
    "block_out_channels": [128, 256, 512, 512],
    "down_block_types": ["DownEncoderBlock2D"] * 4,
    "up_block_types": ["UpDecoderBlock2D"] * 4,
    "layers_per_block": 2,
    "use_quant_conv": False,
    "use_post_quant_conv": False,
}
KL4 = {**KL16, "latent_channels": 4, "use_quant_conv": True, "use_post_quant_conv": True}


def convert_unet(tensors: original.Tensors, config: Mapping[str, Any]) -> original.Tensors:
    return converters.convert_ldm_unet_checkpoint(original.below("model.diffusion_model.", tensors), config)


def without_config(name: str) -> Callable[..., original.Tensors]:
    return lambda tensors, config: getattr(converters, name)(tensors)


CASES: list[Any] = [
    pytest.param(
        "UNet2DConditionModel", config, lambda s: original.unet(s, 2), unet_config, convert_unet, id=name
    )
    for name, config in {"sd15": SD15, "sd2": SD2, "sdxl": SDXL}.items()
]
CASES += [
    pytest.param(
        "SD3Transformer2DModel",
        config,
        lambda s, layers=config["num_layers"]: original.sd3(s, layers),
        sd3.transformer_config,
        without_config("convert_sd3_transformer_checkpoint_to_diffusers"),
        id=name,
    )
    for name, config in {"sd3": SD3_MEDIUM, "sd35_medium": SD35_MEDIUM, "sd35_large": SD35_LARGE}.items()
]
CASES += [
    pytest.param(
        "FluxTransformer2DModel",
        config,
        original.flux,
        flux.transformer_config,
        without_config("convert_flux_transformer_checkpoint_to_diffusers"),
        id=name,
    )
    for name, config in {"flux_dev": {"guidance_embeds": True}, "flux_schnell": {}}.items()
]
CASES += [
    pytest.param(
        "ZImageTransformer2DModel",
        {},
        original.z_image,
        z_image.transformer_config,
        without_config("convert_z_image_transformer_checkpoint_to_diffusers"),
        id="z_image",
    )
]
CASES += [
    pytest.param(
        "AutoencoderKL",
        config,
        lambda s: original.autoencoder(s, 4),
        kl_config,
        converters.convert_ldm_vae_checkpoint,
        id=name,
    )
    for name, config in {"kl4": KL4, "kl16": KL16}.items()
]


def module(class_name: str, config: Mapping[str, Any]) -> Any:
    with torch.device("meta"):
        return getattr(diffusers, class_name)(**config)


def shapes_of(state: Mapping[str, torch.Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


@pytest.mark.parametrize(("class_name", "config", "originally", "config_of", "convert"), CASES)
def test_a_published_models_file_tells_its_configuration(
    class_name: str,
    config: Mapping[str, Any],
    originally: Callable[[Any], original.Tensors],
    config_of: Callable[[Shapes], Mapping[str, Any]],
    convert: Callable[..., original.Tensors],
) -> None:
    published = module(class_name, config)
    tensors = originally(published.state_dict())
    derived = config_of(shapes_of(tensors))
    assert shapes_of(module(class_name, derived).state_dict()) == shapes_of(published.state_dict())
    assert shapes_of(convert(dict(tensors), config=derived)) == shapes_of(published.state_dict())
    for name in derived.keys() - {"sample_size", "axes_lens"}:  # neither changes a result
        stated = published.config[name]
        assert stated is None or _plain(derived[name]) == _plain(stated), name


def _plain(value: Any) -> Any:
    """A number for all levels and a list of that number mean the same."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values[0] if values and all(each == values[0] for each in values) else values
