"""The loader keeps what is used, puts out what is not, and says what is wrong with a damaged file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.api import ModelRef, SamplingOverride
from runtime.diffusion.families.base import Cond
from runtime.diffusion.model import Loader, inspect_checkpoint
from runtime.platform.errors import MissingFile, Unsupported


def model_of(folder: Path) -> ModelRef:
    model = inspect_checkpoint(folder).model
    assert model is not None
    return model


def test_a_resident_network_is_given_again(saved: Callable[..., Any]) -> None:
    model = model_of(saved("sd15")[1])
    loader = Loader(dict)
    assert loader.network(model) is loader.network(model)
    loader.unload()
    assert loader.resident_bytes == 0


def test_another_schedule_is_not_another_network(saved: Callable[..., Any]) -> None:
    model = model_of(saved("sd3")[1])
    loader = Loader(dict)
    shifted = ModelRef(model.weights, model.family, sampling=SamplingOverride(shift=1.0))
    assert loader.network(model) is loader.network(shifted)
    schedules = [loader.family(ref).schedule(ref, ref.sampling).sigma(500.0) for ref in (model, shifted)]
    assert schedules == pytest.approx([0.75, 0.5])


def test_the_least_recently_used_is_put_out_first(saved: Callable[..., Any]) -> None:
    folders = [saved(family)[1] for family in ("sd3", "flux", "z_image")]
    refs = [model_of(folder) for folder in folders]
    sizes = []
    for ref in refs:
        loader = Loader(dict)
        loader.network(ref)
        sizes.append(loader.resident_bytes)
    # a little over all: files are a little larger than what is made of them
    loader = Loader(dict, budget_bytes=sum(sizes) + 100_000)
    first = loader.network(refs[0])
    second = loader.network(refs[1])
    assert loader.network(refs[0]) is first
    loader._budget_bytes = sum(sizes) - 1
    loader.network(refs[2])
    assert loader.resident_bytes <= sum(sizes) - 1
    assert loader.network(refs[1]) is not second
    # what was put out still works for who holds it
    width = 48
    cond = Cond(torch.zeros(1, 8, width), torch.zeros(1, 32))
    assert second.forward(torch.zeros(1, 4, 8, 8), torch.tensor([0.5]), [cond]).isfinite().all()


def test_one_thing_larger_than_the_budget_is_loaded_all_the_same(saved: Callable[..., Any]) -> None:
    loader = Loader(dict, budget_bytes=1)
    model = model_of(saved("flux")[1])
    assert loader.network(model) is loader.network(model)


def test_a_truncated_file_is_refused_and_the_loader_goes_on(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(saved("sd15")[1], folder)
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    loader = Loader(dict)
    with pytest.raises(Unsupported, match=r"could not load .*broken"):
        loader.network(model_of(folder))
    weights.unlink()
    with pytest.raises((Unsupported, MissingFile)):
        loader.network(model_of(folder))
    assert loader.network(model_of(saved("sd15")[1]))


def test_a_folder_that_lacks_tensors_is_refused(saved: Callable[..., Any], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "partial"
    shutil.copytree(saved("sd3")[1], folder)
    weights = folder / "transformer" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(weights)
    del tensors["proj_out.bias"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(Unsupported, match=r"lacks proj_out\.bias"):
        Loader(dict).network(model_of(folder))


def test_a_missing_tokenizer_says_where_to_put_it(saved: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "flux"
    shutil.copytree(saved("flux")[1], folder)
    shutil.rmtree(folder / "tokenizer_2")
    clip = inspect_checkpoint(folder).clip
    assert clip is not None
    with pytest.raises(MissingFile, match=r"tokenizer\.json of google/t5-v1_1-xxl"):
        Loader(dict).text_encoder(clip)
    shutil.rmtree(folder / "text_encoder_2")
    with pytest.raises(MissingFile, match="FLUX needs the text encoder T5"):
        Loader(dict).text_encoder(clip)


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_a_conditioning_of_another_model_is_refused(saved: Callable[..., Any], family: str) -> None:
    network = Loader(dict).network(model_of(saved(family)[1]))
    with pytest.raises(Unsupported, match="use the text encoder that belongs to it"):
        network.forward(torch.zeros(1, 4, 8, 8), torch.tensor([0.5]), [Cond(torch.zeros(1, 8, 5))])


def test_half_precision_networks_answer_in_the_latents_type(saved: Callable[..., Any]) -> None:
    for family, width in (("sd15", 32), ("sd3", 128), ("flux", 48), ("z_image", 16)):
        network = Loader(dict, dtype=torch.bfloat16).network(model_of(saved(family)[1]))
        x = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(0))
        answer = network.forward(x, torch.tensor([0.5]), [Cond(torch.ones(1, 8, width))])
        assert network.dtype == torch.bfloat16
        assert answer.dtype == torch.float32
        assert answer.isfinite().all()


def test_an_inpainting_network_takes_mask_and_picture(tmp_path: Path) -> None:
    from tests.cpu.families import tiny

    tiny.sd15_unet(in_channels=9, out_channels=4, cross_attention_dim=32).save_pretrained(tmp_path)
    network = Loader(dict).network(ModelRef(tmp_path, "sd15"))
    x = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    tokens = torch.ones(1, 77, 32)
    answers = [
        network.forward(x, torch.tensor([500.0]), [Cond(tokens, concat=torch.full((1, 5, 8, 8), fill))])
        for fill in (0.0, 1.0)
    ]
    assert (answers[0] - answers[1]).abs().max() > 1e-3
    with pytest.raises(Unsupported, match="use InpaintModelConditioning"):
        network.forward(x, torch.tensor([500.0]), [Cond(tokens)])


def test_a_picture_too_large_for_the_model_is_refused_in_pixels(saved: Callable[..., Any]) -> None:
    network = Loader(dict).network(model_of(saved("sd3")[1]))
    with pytest.raises(Unsupported, match="at most 64 x 64 pixels, not 128 x 16"):
        network.forward(torch.zeros(1, 4, 8, 64), torch.tensor([0.5]), [Cond(torch.zeros(1, 8, 128))])


def test_a_broken_autoencoder_costs_only_the_previews(saved: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "sd15"
    shutil.copytree(saved("sd15")[1], folder)
    assert Loader(dict).latent_format(model_of(folder)).rgb is not None
    weights = folder / "vae" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    latent_format = Loader(dict).latent_format(model_of(folder))
    assert latent_format.rgb is None
    assert latent_format.scale == 0.18215


def test_a_folder_of_half_precision_files_alone_is_loaded(saved: Callable[..., Any], tmp_path: Path) -> None:
    pipeline, folder = saved("sdxl")
    half = type(pipeline).from_pretrained(folder, local_files_only=True, dtype=torch.float16)
    half.save_pretrained(tmp_path / "half", variant="fp16")
    assert list((tmp_path / "half" / "unet").glob("*.fp16.safetensors"))
    checkpoint = inspect_checkpoint(tmp_path / "half")
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    assert checkpoint.vae is not None
    loader = Loader(dict)
    assert loader.network(checkpoint.model).dtype == torch.float32
    [[tokens, _]] = loader.text_encoder(checkpoint.clip).encode([("a cat",)])[0]
    assert tokens.isfinite().all()
    assert loader.autoencoder(checkpoint.vae).decode(torch.zeros(1, 4, 4, 4)).shape == (1, 3, 8, 8)
