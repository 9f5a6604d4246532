"""A LoRA changes the weights as the stock pipeline's loader does, in the spellings that files use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from runtime.diffusion.api import LoraPatch, ModelRef, TextEncoderRef
from runtime.diffusion.model import Loader, inspect_checkpoint
from runtime.platform.errors import MissingFile, Unsupported

RANK, ALPHA = 4, 2.0


def pair(weight: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    down = torch.randn(RANK, *weight.shape[1:], generator=generator) * 0.2
    up = torch.randn(weight.shape[0], RANK, *[1] * (weight.ndim - 2), generator=generator) * 0.2
    return down, up


def kohya(module: Any, names: Mapping[str, str]) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = {}
    for seed, (path, spelled) in enumerate(names.items()):
        down, up = pair(module.get_submodule(path).weight, seed)
        tensors |= {f"{spelled}.lora_down.weight": down, f"{spelled}.lora_up.weight": up}
        tensors[f"{spelled}.alpha"] = torch.tensor(ALPHA)
    return tensors


UNET_LAYERS = {
    "sd15": (
        "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q",
        "up_blocks.1.attentions.0.transformer_blocks.0.attn2.to_out.0",
        "mid_block.attentions.0.proj_in",
    ),
    "sdxl": (
        "down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_k",
        "up_blocks.0.attentions.0.transformer_blocks.1.ff.net.0.proj",
    ),
}


def models(saved: Callable[..., Any], family: str, path: Path, strength: float) -> tuple[Any, Any]:
    """The network with the LoRA and without it."""
    model = inspect_checkpoint(saved(family)[1]).model
    assert model is not None
    loader = Loader(dict)
    with_lora = loader.network(model.with_lora(LoraPatch(path, strength)))
    return with_lora.modules[0], loader.network(model).modules[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", ["sd15", "sdxl"])
def test_a_kohya_lora_is_fused_as_by_the_pipeline(
    saved: Callable[..., Any], tmp_path: Path, family: str
) -> None:
    pipeline, folder = saved(family)
    names = {name: "lora_unet_" + name.replace(".", "_") for name in UNET_LAYERS[family]}
    path = tmp_path / "lora.safetensors"
    save_file(kohya(pipeline.unet, names), path)
    ours, plain = models(saved, family, path, 0.7)
    stock = type(pipeline).from_pretrained(folder, local_files_only=True)
    stock.load_lora_weights(tmp_path, weight_name=path.name)
    stock.fuse_lora(lora_scale=0.7)
    for name in names:
        fused = stock.unet.get_submodule(name).base_layer.weight
        torch.testing.assert_close(ours.get_submodule(name).weight, fused)
        assert (fused - plain.get_submodule(name).weight).abs().max() > 0.01


def test_sdxls_original_block_names_are_understood(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, _ = saved("sdxl")
    name = "down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_k"
    spelled = "lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_k"
    path = tmp_path / "lora.safetensors"
    save_file(kohya(pipeline.unet, {name: spelled}), path)
    ours, plain = models(saved, "sdxl", path, 1.0)
    down, up = pair(pipeline.unet.get_submodule(name).weight, 0)
    expected = plain.get_submodule(name).weight + ALPHA / RANK * up @ down
    torch.testing.assert_close(ours.get_submodule(name).weight, expected)


@pytest.mark.parametrize("family", ["sd3", "flux", "z_image"])
def test_a_lora_in_diffusers_spelling_adds_up_times_down(
    saved: Callable[..., Any], tmp_path: Path, family: str
) -> None:
    pipeline, _ = saved(family)
    name = {
        "sd3": "transformer_blocks.0.attn.to_q",
        "flux": "single_transformer_blocks.1.attn.to_v",
        "z_image": "layers.1.attention.to_k",
    }[family]
    down, up = pair(pipeline.transformer.get_submodule(name).weight, 0)
    path = tmp_path / "lora.safetensors"
    save_file({f"transformer.{name}.lora_A.weight": down, f"transformer.{name}.lora_B.weight": up}, path)
    ours, plain = models(saved, family, path, -0.5)
    expected = plain.get_submodule(name).weight - 0.5 * up @ down
    torch.testing.assert_close(ours.get_submodule(name).weight, expected)


def test_a_lora_changes_the_text_encoder_too(saved: Callable[..., Any], tmp_path: Path) -> None:
    _, folder = saved("sd15")
    clip = inspect_checkpoint(folder).clip
    assert clip is not None
    loader = Loader(dict)
    plain = loader.text_encoder(clip)
    module = plain.modules[0]  # type: ignore[attr-defined]
    name = "encoder.layers.1.self_attn.q_proj"
    path = tmp_path / "lora.safetensors"
    tensors = kohya(module, {name: "lora_te_text_model_" + name.replace(".", "_")})
    save_file(tensors, path)
    patched = loader.text_encoder(clip.with_lora(LoraPatch(path, 1.0)))
    down, up = pair(module.get_submodule(name).weight, 0)
    expected = module.get_submodule(name).weight + ALPHA / RANK * up @ down
    torch.testing.assert_close(patched.modules[0].get_submodule(name).weight, expected)  # type: ignore[attr-defined]


def test_two_loras_add_up_and_strength_zero_is_no_lora(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, folder = saved("sd15")
    name = UNET_LAYERS["sd15"][0]
    path = tmp_path / "lora.safetensors"
    save_file(kohya(pipeline.unet, {name: "lora_unet_" + name.replace(".", "_")}), path)
    model = inspect_checkpoint(folder).model
    assert model is not None
    loader = Loader(dict)
    plain = loader.network(model)
    assert loader.network(model.with_lora(LoraPatch(path, 0.0))) is plain
    twice = loader.network(model.with_lora(LoraPatch(path, 0.5)).with_lora(LoraPatch(path, 0.5)))
    once = loader.network(model.with_lora(LoraPatch(path, 1.0)))
    weights = [network.modules[0].get_submodule(name).weight for network in (twice, once)]  # type: ignore[attr-defined]
    torch.testing.assert_close(*weights)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (
            {"unet.nowhere.lora_A.weight": (4, 8), "unet.nowhere.lora_B.weight": (8, 4)},
            "does not fit this model",
        ),
        ({"lora_unet_x.hada_w1_a": (4, 8)}, "LoHa"),
        ({"lora_unet_x.lora_down.weight": (4, 8)}, "no spelling that is known"),
    ],
)
def test_a_lora_that_cannot_be_used_says_why(
    saved: Callable[..., Any], tmp_path: Path, tensors: dict[str, tuple[int, ...]], words: str
) -> None:
    path = tmp_path / "odd.safetensors"
    save_file({name: torch.zeros(shape) for name, shape in tensors.items()}, path)
    with pytest.raises(Unsupported, match=words):
        models(saved, "sd15", path, 1.0)


def test_a_missing_lora_is_named(saved: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"gone\.safetensors"):
        models(saved, "sd15", tmp_path / "gone.safetensors", 1.0)


def test_references_with_other_loras_differ() -> None:
    model = ModelRef(Path("a"), "sd15")
    assert model.with_lora(LoraPatch(Path("b"), 1.0)) != model.with_lora(LoraPatch(Path("b"), 0.5))
    clip = TextEncoderRef((Path("a"),), "sd15")
    assert len({clip, clip.with_lora(LoraPatch(Path("b"), 1.0))}) == 2
