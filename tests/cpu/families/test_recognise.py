"""What files and folders are, told from real key names and shapes in headers without any tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from runtime.diffusion.families import flux, sd3, z_image
from runtime.diffusion.families.unet_shapes import unet_config
from runtime.diffusion.model import (
    inspect_checkpoint,
    inspect_clip,
    inspect_control,
    inspect_model,
    inspect_vae,
)
from runtime.platform.errors import MissingFile, Unsupported
from tests.cpu.families import tiny

Shapes = Mapping[str, tuple[int, ...]]


def write(path: Path, shapes: Shapes) -> Path:
    """A safetensors file that is all header."""
    header = {
        name: {"dtype": "F16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()
    }
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return path


def below(prefix: str, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    return {f"{prefix}{name}": shape for name, shape in shapes.items()}


def unet(
    cross: int, *, first: str = "input_blocks.1.1", channels: int = 4, **more: tuple[int, ...]
) -> Shapes:
    return {
        "input_blocks.0.0.weight": (320, channels, 3, 3),
        f"{first}.transformer_blocks.0.attn2.to_k.weight": (320, cross),
        "out.2.weight": (4, 320, 3, 3),
        **more,
    }


SDXL = unet(2048, first="input_blocks.4.1") | {"label_emb.0.0.weight": (1280, 2816)}
SD3 = {
    "joint_blocks.0.context_block.attn.qkv.weight": (4608, 1536),
    "joint_blocks.0.x_block.attn.qkv.weight": (4608, 1536),
    "joint_blocks.23.x_block.attn.qkv.weight": (4608, 1536),
    "joint_blocks.12.x_block.attn2.qkv.weight": (4608, 1536),
    "joint_blocks.0.x_block.attn.ln_q.weight": (64,),
    "pos_embed": (1, 147456, 1536),
    "x_embedder.proj.weight": (1536, 16, 2, 2),
    "final_layer.linear.weight": (64, 1536),
    "context_embedder.weight": (1536, 4096),
    "y_embedder.mlp.0.weight": (1536, 2048),
}
SCHNELL = {
    "img_in.weight": (3072, 64),
    "txt_in.weight": (3072, 4096),
    "vector_in.in_layer.weight": (3072, 768),
    "double_blocks.0.img_attn.norm.query_norm.scale": (128,),
    "double_blocks.18.img_attn.qkv.weight": (9216, 3072),
    "single_blocks.37.linear1.weight": (21504, 3072),
    "final_layer.linear.weight": (64, 3072),
}
DEV = {**SCHNELL, "guidance_in.in_layer.weight": (3072, 256)}
Z_IMAGE = {
    "cap_embedder.0.weight": (2560,),
    "noise_refiner.0.attention.qkv.weight": (11520, 3840),
    "noise_refiner.1.attention.qkv.weight": (11520, 3840),
    "x_pad_token": (1, 3840),
    "x_embedder.weight": (3840, 64),
    "layers.0.attention.q_norm.weight": (128,),
    "layers.29.attention.qkv.weight": (11520, 3840),
}


@pytest.mark.parametrize("prefix", ["model.diffusion_model.", "diffusion_model.", ""])
@pytest.mark.parametrize(
    ("shapes", "family"),
    [
        (unet(768), "sd15"),
        (unet(768, channels=9), "sd15"),
        (SDXL, "sdxl"),
        (SD3, "sd3"),
        (DEV, "flux"),
        (SCHNELL, "flux_schnell"),
        (Z_IMAGE, "z_image"),
    ],
)
def test_networks_are_recognised_below_any_prefix(
    tmp_path: Path, prefix: str, shapes: Shapes, family: str
) -> None:
    assert inspect_model(write(tmp_path / "model.safetensors", below(prefix, shapes))).family == family


@pytest.mark.parametrize(("spread", "family"), [(0.2, "sd2_v"), (0.02, "sd2"), (None, "sd2")])
@pytest.mark.parametrize("prefix", ["model.diffusion_model.", ""])
def test_the_spread_of_one_bias_tells_the_prediction_of_sd2(
    tmp_path: Path, prefix: str, spread: float | None, family: str
) -> None:
    tensors = {name: torch.zeros(1, *shape)[0, :1].expand(shape) for name, shape in unet(1024).items()}
    if spread is not None:
        bias = torch.randn(320, generator=torch.Generator().manual_seed(0)) * spread
        tensors["output_blocks.11.1.transformer_blocks.0.norm1.bias"] = bias
    save_file(
        {f"{prefix}{name}": tensor.contiguous() for name, tensor in tensors.items()},
        tmp_path / "a.safetensors",
    )
    assert inspect_model(tmp_path / "a.safetensors").family == family


def test_a_marker_beside_the_network_tells_a_v_model(tmp_path: Path) -> None:
    shapes = {**below("model.diffusion_model.", SDXL), "v_pred": (1,)}
    assert inspect_model(write(tmp_path / "model.safetensors", shapes)).family == "sdxl_v"


def test_an_all_in_one_file_has_three_parts(tmp_path: Path) -> None:
    vae = {
        "encoder.conv_in.weight": (128, 3, 3, 3),
        "decoder.conv_in.weight": (512, 4, 3, 3),
        **{f"encoder.down.{level}.block.0.conv2.weight": (128, 128, 3, 3) for level in range(4)},
    }
    shapes = {
        **below("model.diffusion_model.", unet(768)),
        **below("first_stage_model.", vae),
        "cond_stage_model.transformer.text_model.embeddings.token_embedding.weight": (49408, 768),
    }
    checkpoint = inspect_checkpoint(write(tmp_path / "sd.safetensors", shapes))
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    assert checkpoint.vae is not None
    assert checkpoint.clip.family == checkpoint.model.family == "sd15"
    assert (checkpoint.vae.channels, checkpoint.vae.factor) == (4, 8)
    bare = inspect_checkpoint(write(tmp_path / "bare.safetensors", unet(768)))
    assert (bare.clip, bare.vae) == (None, None)


CLIP = "text_model.embeddings.token_embedding.weight"
ENCODERS = {
    "clip_l": {CLIP: (49408, 768)},
    "clip_g": {CLIP: (49408, 1280)},
    "clip_h": {"token_embedding.weight": (49408, 1024)},
    "t5": {"encoder.block.0.layer.0.SelfAttention.q.weight": (4096, 4096), "shared.weight": (32128, 4096)},
    "qwen3": {"model.layers.0.self_attn.q_norm.weight": (128,), "model.embed_tokens.weight": (151936, 2560)},
}


@pytest.mark.parametrize(
    ("roles", "kind", "family"),
    [
        (("clip_l",), "stable_diffusion", "sd15"),
        (("clip_h",), "stable_diffusion", "sd2"),
        (("clip_l", "clip_g"), "sdxl", "sdxl"),
        (("clip_g", "clip_l"), "stable_diffusion", "sdxl"),
        (("clip_l", "t5"), "flux", "flux"),
        (("clip_l", "clip_g", "t5"), "sd3", "sd3"),
        (("t5",), "sd3", "sd3"),
        (("qwen3",), "lumina2", "z_image"),
    ],
)
def test_text_encoder_files_make_a_reference(
    tmp_path: Path, roles: tuple[str, ...], kind: str, family: str
) -> None:
    paths = tuple(write(tmp_path / f"{role}.safetensors", ENCODERS[role]) for role in roles)
    ref = inspect_clip(paths, kind)
    assert (ref.family, ref.weights) == (family, paths)


def test_text_encoders_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    t5 = write(tmp_path / "t5.safetensors", ENCODERS["t5"])
    with pytest.raises(Unsupported, match="takes clip_l, not t5"):
        inspect_clip((t5,), "stable_diffusion")
    with pytest.raises(Unsupported, match=r"type wan is not supported; supported: .*flux"):
        inspect_clip((t5,), "wan")
    with pytest.raises(Unsupported, match="no text encoder"):
        inspect_clip((write(tmp_path / "x.safetensors", {"x": (1,)}),), "sd3")


def test_what_is_not_known_is_refused_with_what_is(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.safetensors", {"layer.weight": (1, 2)})
    with pytest.raises(Unsupported, match=r"odd\.safetensors is of no family.*sdxl.*z_image"):
        inspect_checkpoint(path)
    with pytest.raises(Unsupported, match="holds no autoencoder"):
        inspect_vae(path)
    with pytest.raises(Unsupported, match="not a ControlNet"):
        inspect_control(path)
    for inspect in (inspect_checkpoint, inspect_model, inspect_vae, inspect_control):
        with pytest.raises(MissingFile):
            inspect(tmp_path / "gone.safetensors")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text('{"_class_name": "WanTransformer3DModel"}')
    with pytest.raises(Unsupported, match="WanTransformer3DModel; supported families"):
        inspect_model(tmp_path / "folder")


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_a_pipeline_folder_and_its_component_folders_are_recognised(
    saved: Callable[..., Any], family: str
) -> None:
    _, folder = saved(family)
    checkpoint = inspect_checkpoint(folder)
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    assert checkpoint.vae is not None
    assert checkpoint.model.family == checkpoint.clip.family == family
    network = folder / ("unet" if family in ("sd15", "sdxl") else "transformer")
    assert inspect_model(network).family == family
    assert inspect_vae(folder / "vae").channels == checkpoint.vae.channels


def test_a_v_prediction_folder_is_a_v_model(saved: Callable[..., Any], tmp_path: Path) -> None:
    _, folder = saved("sd15")
    for name in ("unet", "scheduler"):
        (tmp_path / name).mkdir()
    (tmp_path / "model_index.json").write_text("{}")
    (tmp_path / "unet" / "config.json").write_text((folder / "unet" / "config.json").read_text())
    (tmp_path / "scheduler" / "scheduler_config.json").write_text('{"prediction_type": "v_prediction"}')
    checkpoint = inspect_checkpoint(tmp_path)
    assert checkpoint.model is not None
    assert checkpoint.model.family == "sd15_v"
    assert (checkpoint.clip, checkpoint.vae) == (None, None)


def test_published_sizes_follow_from_the_shapes() -> None:
    dev = flux.transformer_config(DEV)
    assert (dev["num_layers"], dev["num_single_layers"], dev["num_attention_heads"]) == (19, 38, 24)
    assert dev["guidance_embeds"]
    assert not flux.transformer_config(SCHNELL)["guidance_embeds"]
    medium = sd3.transformer_config(SD3)
    assert (medium["num_layers"], medium["num_attention_heads"], medium["pos_embed_max_size"]) == (
        24,
        24,
        384,
    )
    assert medium["dual_attention_layers"] == [12]
    assert medium["qk_norm"] == "rms_norm"
    turbo = z_image.transformer_config(Z_IMAGE)
    assert (turbo["n_layers"], turbo["n_refiner_layers"], turbo["n_heads"], turbo["in_channels"]) == (
        30,
        2,
        30,
        16,
    )


def sd15_shapes() -> Shapes:
    """The way down of the real SD1.5, level by level."""
    shapes: dict[str, tuple[int, ...]] = {
        "input_blocks.0.0.weight": (320, 4, 3, 3),
        "out.2.weight": (4, 320, 3, 3),
        "input_blocks.1.1.proj_in.weight": (320, 320, 1, 1),
        "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight": (320, 768),
    }
    place = 0
    for level, channels in enumerate((320, 640, 1280, 1280)):
        for _ in range(2):
            place += 1
            shapes[f"input_blocks.{place}.0.out_layers.3.weight"] = (channels, channels, 3, 3)
            if level < 3:
                shapes[f"input_blocks.{place}.1.transformer_blocks.0.norm1.weight"] = (channels,)
        if level < 3:
            place += 1
            shapes[f"input_blocks.{place}.0.op.weight"] = (channels, channels, 3, 3)
    return shapes


def test_sd15s_configuration_is_what_diffusers_takes_by_default() -> None:
    config = unet_config(sd15_shapes())
    default = tiny.diffusers.UNet2DConditionModel(
        block_out_channels=(32, 64, 128, 128), cross_attention_dim=768
    ).config
    assert config["block_out_channels"] == [320, 640, 1280, 1280]
    for name in ("down_block_types", "up_block_types"):
        assert tuple(config[name]) == tuple(default[name])
    for name in (
        "layers_per_block",
        "attention_head_dim",
        "in_channels",
        "out_channels",
        "use_linear_projection",
    ):
        assert config[name] == default[name]
