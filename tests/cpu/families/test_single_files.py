"""An all-in-one file is recognised and answers as the diffusers folder that it was made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from runtime.diffusion.api import Checkpoint
from runtime.diffusion.families.base import Cond
from runtime.diffusion.model import Loader, inspect_checkpoint, inspect_clip, inspect_model, inspect_vae
from runtime.platform.errors import Unsupported
from tests.cpu.families import original, tiny

PROMPT = (("a (red:1.3) cat",),)


def autoencoder_of(pipeline: Any) -> original.Tensors:
    return original.below("first_stage_model.", original.autoencoder(pipeline.vae.state_dict(), 2))


def clip_l_below(prefix: str, module: Any) -> original.Tensors:
    return original.below(
        prefix, {f"text_model.{name}": value for name, value in module.state_dict().items()}
    )


def sd15_file(pipeline: Any) -> original.Tensors:
    return {
        **original.below("model.diffusion_model.", original.unet(pipeline.unet.state_dict(), 1)),
        **autoencoder_of(pipeline),
        **clip_l_below("cond_stage_model.transformer.", pipeline.text_encoder),
    }


def sdxl_file(pipeline: Any) -> original.Tensors:
    open_clip = original.open_clip(pipeline.text_encoder_2.state_dict())
    return {
        **original.below("model.diffusion_model.", original.unet(pipeline.unet.state_dict(), 2)),
        **autoencoder_of(pipeline),
        **clip_l_below("conditioner.embedders.0.transformer.", pipeline.text_encoder),
        **original.below("conditioner.embedders.1.model.", open_clip),
    }


def sd3_file(pipeline: Any) -> original.Tensors:
    return {
        **original.below("model.diffusion_model.", original.sd3(pipeline.transformer.state_dict(), 2)),
        **autoencoder_of(pipeline),
    }


def same_answers(
    file: Checkpoint, folder: Checkpoint, width: int, pooled: torch.Tensor | None = None
) -> None:
    """Through the network and the autoencoder."""
    loader = Loader(dict)
    assert file.model is not None and folder.model is not None  # noqa: PT018
    assert file.vae is not None and folder.vae is not None  # noqa: PT018
    x = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    cond = Cond(torch.randn(1, 77, width, generator=torch.Generator().manual_seed(2)), pooled)
    answers = [
        loader.network(ref).forward(x, torch.tensor([500.0]), [cond]) for ref in (file.model, folder.model)
    ]
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-5, atol=1e-5)
    pixels = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    for name, source in (("encode", pixels), ("decode", x)):
        ours, stock = (getattr(loader.autoencoder(ref), name)(source) for ref in (file.vae, folder.vae))
        torch.testing.assert_close(ours, stock, rtol=1e-5, atol=1e-5)


def test_an_sd15_file_is_its_folder(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, folder = saved("sd15_wide")
    path = tmp_path / "model.safetensors"
    save_file(sd15_file(pipeline), path)
    file = inspect_checkpoint(path)
    assert file.model is not None
    assert file.model.family == "sd15"
    same_answers(file, inspect_checkpoint(folder), 768)
    same_prompts(file, inspect_checkpoint(folder))


def test_an_sdxl_file_is_its_folder(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, folder = saved("sdxl_wide")
    path = tmp_path / "model.safetensors"
    save_file(sdxl_file(pipeline), path)
    file = inspect_checkpoint(path)
    assert file.model is not None
    assert file.model.family == "sdxl"
    same_answers(file, inspect_checkpoint(folder), 2048, torch.ones(1, 32))
    same_prompts(file, inspect_checkpoint(folder))


def test_an_sd3_file_is_its_folder(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, folder = saved("sd3")
    path = tmp_path / "model.safetensors"
    save_file(sd3_file(pipeline), path)
    file = inspect_checkpoint(path)
    assert file.model is not None
    assert file.model.family == "sd3"
    assert file.clip is None
    same_answers(file, inspect_checkpoint(folder), 128, torch.ones(1, 64))


@pytest.mark.parametrize("naming", ["original", "diffusers"])
def test_a_z_image_network_file_is_its_folder(tmp_path: Path, naming: str) -> None:
    module = tiny.z_image_transformer(
        dim=128, n_heads=1, n_kv_heads=1, axes_dims=[32, 48, 48], axes_lens=[64, 32, 32]
    )
    module.save_pretrained(tmp_path / "folder")
    state = original.z_image(module.state_dict()) if naming == "original" else module.state_dict()
    save_file(original.below("model.diffusion_model.", state), tmp_path / "file.safetensors")
    loader = Loader(dict)
    refs = [inspect_model(tmp_path / name) for name in ("file.safetensors", "folder")]
    assert [ref.family for ref in refs] == ["z_image", "z_image"]
    x = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    cond = Cond(torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(1)))
    file, folder = (loader.network(ref).forward(x, torch.tensor([0.4]), [cond]) for ref in refs)
    torch.testing.assert_close(file, folder)


def same_prompts(file: Checkpoint, folder: Checkpoint) -> None:
    loader = Loader(dict)
    assert file.clip is not None
    assert folder.clip is not None
    ours, stock = (loader.text_encoder(ref).encode(PROMPT)[0] for ref in (file.clip, folder.clip))
    torch.testing.assert_close(ours[0][0], stock[0][0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        ours[0][1]["pooled_output"], stock[0][1]["pooled_output"], rtol=1e-5, atol=1e-5
    )


def test_a_network_alone_is_recognised_with_and_without_its_prefix(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    pipeline, _ = saved("sd15_wide")
    bare = original.unet(pipeline.unet.state_dict(), 1)
    for name, prefix in (("bare", ""), ("prefixed", "model.diffusion_model.")):
        path = tmp_path / f"{name}.safetensors"
        save_file(original.below(prefix, bare), path)
        assert inspect_model(path).family == "sd15"
        Loader(dict).network(inspect_model(path))


def test_an_autoencoder_alone_is_recognised_in_both_namings(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    pipeline, folder = saved("sd15")
    states = {
        "original": original.autoencoder(pipeline.vae.state_dict(), 2),
        "diffusers": pipeline.vae.state_dict(),
    }
    loader = Loader(dict)
    latent = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    stock = loader.autoencoder(inspect_vae(folder)).decode(latent)
    for name, state in states.items():
        path = tmp_path / f"{name}.safetensors"
        save_file(original.below("", state), path)
        ref = inspect_vae(path)
        assert (ref.channels, ref.factor) == (4, 2)
        torch.testing.assert_close(loader.autoencoder(ref).decode(latent), stock)


@pytest.mark.parametrize("role", ["t5", "qwen3"])
def test_a_text_encoder_alone_is_its_folder(saved: Callable[..., Any], tmp_path: Path, role: str) -> None:
    from runtime.diffusion.encoder_parts import find_encoders
    from runtime.diffusion.encoders import load_encoder

    module = tiny.t5(128) if role == "t5" else tiny.qwen3(16)
    prefix = "" if role == "t5" else "model."
    path = tmp_path / f"{role}.safetensors"
    state = {
        name: value for name, value in module.state_dict().items() if name != "encoder.embed_tokens.weight"
    }
    save_file(original.below(prefix, state), path)
    [part] = find_encoders(path)
    assert part.role == role
    ids = torch.tensor([[3, 5, 7, 1]])
    ours = load_encoder(part, torch.float32, "cpu")(input_ids=ids).last_hidden_state
    torch.testing.assert_close(ours, module(input_ids=ids).last_hidden_state)


def test_two_encoder_files_make_one_reference(saved: Callable[..., Any], tmp_path: Path) -> None:
    paths = []
    for role, module in (("clip_l", tiny.clip(768)), ("t5", tiny.t5(128))):
        state = module.state_dict()
        if role == "clip_l":
            state = {f"text_model.{name}": value for name, value in state.items()}
        state.pop("encoder.embed_tokens.weight", None)
        save_file(original.below("", state), tmp_path / f"{role}.safetensors")
        paths.append(tmp_path / f"{role}.safetensors")
    ref = inspect_clip(tuple(paths), "flux")
    assert ref.family == "flux"
    assert ref.weights == tuple(paths)
    tokenizer = tmp_path / "tokenizers" / "t5"
    tiny.word_tokenizer("</s>").save_pretrained(tokenizer)
    [[tokens, extra]] = Loader(dict).text_encoder(ref).encode([("a cat",)])[0]
    assert tokens.shape == (1, 256, 128)
    assert extra["pooled_output"].shape == (1, 768)


def test_weights_in_8_bit_floats_with_a_scale_are_multiplied_out(tmp_path: Path) -> None:
    from runtime.diffusion.encoder_parts import find_encoders
    from runtime.diffusion.encoders import load_encoder

    module = tiny.t5(128)
    state = {
        name: value for name, value in module.state_dict().items() if name != "encoder.embed_tokens.weight"
    }
    name = "encoder.block.1.layer.0.SelfAttention.q.weight"
    small = (state[name] * 64).to(torch.float8_e4m3fn)
    state |= {name: small, name.replace("weight", "scale_weight"): torch.tensor(1 / 64)}
    state["scaled_fp8"] = torch.empty(0, dtype=torch.float8_e4m3fn)
    save_file(original.below("", state), tmp_path / "t5.safetensors")
    [part] = find_encoders(tmp_path / "t5.safetensors")
    loaded = load_encoder(part, torch.float32, "cpu").get_parameter(name)
    torch.testing.assert_close(loaded, small.float() / 64)
    torch.testing.assert_close(loaded, module.get_parameter(name), rtol=0.07, atol=0.01)


def test_a_file_quantised_in_blocks_is_refused(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, _ = saved("sd15_wide")
    tensors = original.below("", original.unet(pipeline.unet.state_dict(), 1))
    tensors["time_embed.0.weight_scale"] = torch.ones(4)
    save_file(tensors, tmp_path / "blocks.safetensors")
    with pytest.raises(Unsupported, match="quantised in blocks"):
        Loader(dict).network(inspect_model(tmp_path / "blocks.safetensors"))


def test_a_network_file_in_diffusers_naming_is_sent_to_its_folder(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    pipeline, _ = saved("sd15_wide")
    save_file(original.below("", pipeline.unet.state_dict()), tmp_path / "unet.safetensors")
    with pytest.raises(Unsupported, match=r"folder with config\.json"):
        inspect_model(tmp_path / "unet.safetensors")
