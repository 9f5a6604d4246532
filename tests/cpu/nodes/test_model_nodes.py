"""What model nodes ask of the diffusion runtime, and what they make of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.control import apply_control_net
from nodes.custom_sampling import (
    basic_guider,
    cfg_guider,
    disable_noise,
    random_noise,
    sample_advanced,
    sample_custom,
)
from nodes.encode_text import encode_text, encode_text_sdxl, set_last_layer
from nodes.latent import empty_latent
from nodes.loaders import (
    load_checkpoint,
    load_checkpoint_with_config,
    load_difference_control_net,
    load_diffusion_model,
    load_lora,
    load_lora_model_only,
    load_two_clips,
)
from nodes.model_patches import sampling_discrete, sampling_flux, sampling_sd3
from nodes.sampling import k_sampler, k_sampler_advanced
from nodes.vae import decode_tiled, encode, encode_for_inpaint, inpaint_model_conditioning
from runtime.diffusion.api import ControlRef, LoraPatch, ModelRef, SampleRequest, TextEncoderRef, VaeRef

MODEL = ModelRef(Path("model"), "sd")
CLIP = TextEncoderRef((Path("clip"),), "sd")
VAE = VaeRef(Path("vae"), "sd", 4, 8)
COND: list[list[Any]] = [[torch.zeros(1, 3, 4), {}]]
ModelFile = Callable[[str, str], Path]


async def test_a_k_sampler_asks_for_what_its_inputs_say(context: JobNodeContext, diffusion: Any) -> None:
    latent = empty_latent(width=64, height=64) | {"batch_index": [3], "noise_mask": torch.ones(1, 1, 8, 8)}
    result = await k_sampler(
        context, model=MODEL, seed=2**64 - 1, steps=5, cfg=3.0, sampler_name="heun", scheduler="beta",
        positive=COND, negative=COND, latent_image=latent, denoise=0.5,
    )  # fmt: skip
    (asked,) = diffusion.requests
    assert asked == replace(
        SampleRequest(asked.id, MODEL, latent["samples"], COND, COND),
        seed=2**64 - 1, steps=5, cfg=3.0, sampler="heun", scheduler="beta", denoise=0.5,
        batch_index=(3,), noise_mask=latent["noise_mask"], latent_factor=8,
    )  # fmt: skip
    assert torch.equal(result["samples"], latent["samples"] + 1)
    assert set(result) == {"samples", "batch_index", "noise_mask"}, "it is no longer an empty latent"


async def test_an_advanced_k_sampler_runs_a_part_of_the_steps(
    context: JobNodeContext, diffusion: Any
) -> None:
    await k_sampler_advanced(
        context, model=MODEL, add_noise="disable", noise_seed=7, start_at_step=2, end_at_step=9,
        return_with_leftover_noise="enable", positive=COND, negative=COND,
        latent_image={"samples": torch.ones(1, 4, 2, 2)},
    )  # fmt: skip
    (asked,) = diffusion.requests
    assert (asked.add_noise, asked.seed, asked.start_step, asked.end_step) == (False, 7, 2, 9)
    assert asked.full_denoise is False
    assert asked.latent_factor is None


async def test_a_shared_control_reaches_the_negative(context: JobNodeContext, diffusion: Any) -> None:
    net = ControlRef(Path("net"), "sd")
    positive = apply_control_net(conditioning=COND, control_net=net, image=torch.zeros(1, 8, 8, 3))
    await k_sampler(context, model=MODEL, positive=positive, negative=COND, latent_image=empty_latent())
    assert diffusion.requests[0].negative[0][1]["control"].net == net


async def test_sampling_in_parts_asks_the_same_as_in_one(context: JobNodeContext, diffusion: Any) -> None:
    latent, sigmas = {"samples": torch.zeros(1, 4, 2, 2)}, torch.tensor([1.0, 0.5, 0.0])
    guider = cfg_guider(model=MODEL, positive=COND, negative=COND, cfg=4.0)
    output, denoised = await sample_advanced(
        context,
        noise=random_noise(noise_seed=5),
        guider=guider,
        sampler="lms",
        sigmas=sigmas,
        latent_image=latent,
    )
    await sample_custom(
        context, model=MODEL, noise_seed=5, cfg=4.0, positive=COND, negative=COND, sampler="lms",
        sigmas=sigmas, latent_image=latent,
    )  # fmt: skip
    one, two = diffusion.requests
    assert one.sigmas is sigmas
    assert replace(one, id="") == replace(two, id="")
    assert (output["samples"].unique().tolist(), denoised["samples"].unique().tolist()) == ([1], [2])


async def test_a_guider_without_a_negative_has_no_scale_and_no_noise_means_none(
    context: JobNodeContext, diffusion: Any
) -> None:
    await sample_advanced(
        context, noise=disable_noise(), guider=basic_guider(model=MODEL, conditioning=COND), sampler="euler",
        sigmas=torch.tensor([1.0, 0.0]), latent_image=empty_latent(),
    )  # fmt: skip
    (asked,) = diffusion.requests
    assert (asked.cfg, asked.add_noise) == (1.0, False)


async def test_levels_without_a_step_change_nothing(context: JobNodeContext, diffusion: Any) -> None:
    latent = empty_latent()
    output, _ = await sample_advanced(
        context, noise=disable_noise(), guider=basic_guider(model=MODEL, conditioning=COND), sampler="euler",
        sigmas=torch.tensor([1.0]), latent_image=latent,
    )  # fmt: skip
    assert output is latent
    assert not diffusion.requests


async def test_a_missing_part_is_named_where_it_is_needed(context: JobNodeContext) -> None:
    nothing: Any = None
    with pytest.raises(NodeInputError, match="CLIP input is empty"):
        await encode_text(context, text="x", clip=nothing)
    with pytest.raises(NodeInputError, match="VAE input is empty"):
        await encode(context, pixels=torch.zeros(1, 8, 8, 3), vae=nothing)
    with pytest.raises(NodeInputError, match="MODEL input is empty"):
        await k_sampler(context, model=nothing, positive=COND, negative=COND, latent_image=empty_latent())


async def test_sdxl_gets_a_text_for_each_encoder_and_its_sizes(
    context: JobNodeContext, diffusion: Any
) -> None:
    (entry,) = await encode_text_sdxl(context, clip=CLIP, width=512, crop_w=3, text_g="g", text_l="l")
    assert diffusion.requests[0].texts == ("g", "l")
    assert (entry[1]["width"], entry[1]["height"], entry[1]["crop_w"]) == (512, 1024, 3)
    assert "pooled_output" in entry[1]


def test_the_last_layer_is_a_part_of_the_reference() -> None:
    assert set_last_layer(clip=CLIP, stop_at_clip_layer=-2) == replace(CLIP, stop_layer=-2)


async def test_a_picture_is_cut_to_whole_cells_in_the_middle(context: JobNodeContext, diffusion: Any) -> None:
    pixels = torch.arange(20.0).reshape(1, 1, 20, 1).expand(1, 19, 20, 4)
    result = await encode(context, pixels=pixels, vae=VAE)
    (asked,) = diffusion.requests
    assert asked.pixels.shape == (1, 16, 16, 3)
    assert asked.pixels[0, 0, 0, 0] == 2
    assert result["samples"].shape == (1, 4, 2, 2)


async def test_a_picture_smaller_than_a_cell_is_refused(context: JobNodeContext) -> None:
    with pytest.raises(NodeInputError, match="5x4 is smaller than one latent cell of 8x8"):
        await encode(context, pixels=torch.zeros(1, 4, 5, 3), vae=VAE)


async def test_tiles_overlap_by_a_quarter_at_most(context: JobNodeContext, diffusion: Any) -> None:
    await decode_tiled(context, samples=empty_latent(), vae=VAE, tile_size=64, overlap=512)
    (asked,) = diffusion.requests
    assert (asked.tile, asked.overlap) == (64, 16)


async def test_inpainting_hides_the_hole_and_repaints_it_grown(
    context: JobNodeContext, diffusion: Any
) -> None:
    mask = torch.zeros(1, 16, 16)
    mask[0, 8, 8] = 1
    result = await encode_for_inpaint(
        context, pixels=torch.ones(1, 16, 16, 3), vae=VAE, mask=mask, grow_mask_by=3
    )
    (asked,) = diffusion.requests
    assert (asked.pixels != 1).sum() == 3, "one pixel of three channels"
    assert asked.pixels[0, 8, 8].tolist() == [0.5] * 3
    assert result["noise_mask"].shape == (1, 1, 16, 16)
    assert result["noise_mask"].sum() == 9


@pytest.mark.parametrize(("grow", "white"), [(0, 1), (1, 1), (2, 4), (5, 25), (6, 36)])
async def test_a_mask_grows_by_a_square(context: JobNodeContext, grow: int, white: int) -> None:
    mask = torch.zeros(1, 32, 32)
    mask[0, 16, 16] = 1
    result = await encode_for_inpaint(
        context, pixels=torch.ones(1, 32, 32, 3), vae=VAE, mask=mask, grow_mask_by=grow
    )
    assert result["noise_mask"].sum() == white


@pytest.mark.parametrize("noise_mask", [True, False])
async def test_an_inpainting_network_is_shown_picture_and_mask(
    context: JobNodeContext, diffusion: Any, noise_mask: bool
) -> None:
    mask = torch.ones(1, 8, 8)
    positive, negative, latent = await inpaint_model_conditioning(
        context,
        positive=COND,
        negative=COND,
        vae=VAE,
        pixels=torch.ones(1, 16, 16, 3),
        mask=mask,
        noise_mask=noise_mask,
    )
    hidden, whole = diffusion.requests
    assert hidden.pixels.unique().tolist() == [0.5]
    assert whole.pixels.unique().tolist() == [1]
    for side in (positive, negative):
        assert side[0][1]["concat_latent_image"].shape == (1, 4, 2, 2)
        assert side[0][1]["concat_mask"].shape == (1, 1, 16, 16)
    assert ("noise_mask" in latent) is noise_mask
    assert COND[0][1] == {}


def test_a_checkpoint_gives_its_parts_and_none_for_what_it_lacks(
    context: JobNodeContext, model_file: ModelFile
) -> None:
    path = model_file("checkpoints", "sub/a.safetensors")
    model, clip, vae = load_checkpoint(context, ckpt_name="sub/a.safetensors")
    assert (model.weights, clip.weights, vae) == (path, (path,), None)


def test_a_config_states_prediction_and_clip_layer(context: JobNodeContext, model_file: ModelFile) -> None:
    model_file("checkpoints", "a.safetensors")
    model_file("configs", "v2.yaml").write_text(
        "model: {params: {parameterization: v, cond_stage_config: {params: {layer: hidden, layer_idx: -2}}}}"
    )
    model, clip, _ = load_checkpoint_with_config(context, config_name="v2.yaml", ckpt_name="a.safetensors")
    assert model.sampling.prediction == "v"
    assert clip.stop_layer == -2


@pytest.mark.parametrize("text", ["a: [", "[]", "model: 3", "model: {params: {cond_stage_config: x}}"])
def test_a_config_that_is_none_is_refused(context: JobNodeContext, model_file: ModelFile, text: str) -> None:
    model_file("checkpoints", "a.safetensors")
    model_file("configs", "x.yaml").write_text(text)
    with pytest.raises(NodeInputError, match=r"x\.yaml is not a Stable Diffusion config"):
        load_checkpoint_with_config(context, config_name="x.yaml", ckpt_name="a.safetensors")


def test_loras_add_up_and_strength_zero_adds_none(context: JobNodeContext, model_file: ModelFile) -> None:
    path = model_file("loras", "a.safetensors")
    model, clip = load_lora(
        context, model=MODEL, clip=CLIP, lora_name="a.safetensors", strength_model=0.5, strength_clip=0
    )
    assert model.loras == (LoraPatch(path, 0.5),)
    assert clip is CLIP
    twice = load_lora_model_only(context, model=model, lora_name="a.safetensors", strength_model=-1)
    assert [lora.strength for lora in twice.loras] == [0.5, -1]
    assert load_lora_model_only(context, model=MODEL, lora_name="a.safetensors", strength_model=0) is MODEL


def test_two_encoders_are_one_reference(context: JobNodeContext, model_file: ModelFile) -> None:
    paths = (model_file("text_encoders", "a.safetensors"), model_file("text_encoders", "b.safetensors"))
    clip = load_two_clips(context, clip_name1="a.safetensors", clip_name2="b.safetensors", type="flux")
    assert (clip.weights, clip.family) == (paths, "flux")


def test_a_weight_type_that_is_not_served_is_refused(context: JobNodeContext, model_file: ModelFile) -> None:
    path = model_file("diffusion_models", "a.safetensors")
    assert load_diffusion_model(context, unet_name="a.safetensors").weights == path
    with pytest.raises(NodeInputError, match="fp8_e5m2 is not supported; choose default"):
        load_diffusion_model(context, unet_name="a.safetensors", weight_dtype="fp8_e5m2")


def test_a_control_net_saved_as_a_difference_is_refused(
    context: JobNodeContext, model_file: ModelFile
) -> None:
    save_file({"difference": torch.zeros(1)}, model_file("controlnet", "diff.safetensors"))
    save_file({"x": torch.zeros(1)}, model_file("controlnet", "whole.safetensors"))
    assert (
        load_difference_control_net(context, model=MODEL, control_net_name="whole.safetensors").family == "sd"
    )
    with pytest.raises(NodeInputError, match="difference to a model"):
        load_difference_control_net(context, model=MODEL, control_net_name="diff.safetensors")


def test_a_file_that_is_not_there_is_named(context: JobNodeContext) -> None:
    with pytest.raises(NodeInputError, match=r"nope\.safetensors"):
        load_checkpoint(context, ckpt_name="nope.safetensors")


def test_noise_schedules_replace_the_familys_own() -> None:
    shifted = sampling_sd3(model=MODEL, shift=2.5).sampling
    assert shifted is not None
    assert shifted.shift == 2.5
    flux = sampling_flux(model=MODEL, max_shift=1.15, base_shift=0.5, width=1024, height=1024).sampling
    assert flux is not None
    assert flux.shift == pytest.approx(1.15)
    small = sampling_flux(model=MODEL, width=256, height=256).sampling
    assert small is not None
    assert small.shift == pytest.approx(0.5)
    discrete = sampling_discrete(model=MODEL, sampling="v_prediction", zsnr=True).sampling
    assert discrete is not None
    assert (discrete.prediction, discrete.zero_terminal_snr) == ("v", True)
    with pytest.raises(NodeInputError, match="lcm is not supported; choose eps or v_prediction"):
        sampling_discrete(model=MODEL, sampling="lcm")
