"""Load nodes: from a file's name to a reference for the diffusion runtime. No weights are read here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from safetensors import SafetensorError, safe_open

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.types import Clip, ControlNet, Files, Float, InOptional, Model, Options, Vae
from runtime.diffusion.api import Checkpoint, LoraPatch, SamplingOverride

CATEGORY = "model/loaders"

Strength = Annotated[float, Float(-100.0, 100.0, 0.01)]
ClipKind = Literal[
    "stable_diffusion", "stable_cascade", "sd3", "stable_audio", "mochi", "ltxv", "pixart", "cosmos",
    "lumina2", "wan", "hidream", "chroma", "ace", "omnigen2", "qwen_image", "hunyuan_image", "flux2", "ovis",
    "longcat_image", "cogvideox", "lens", "pixeldit", "ideogram4", "boogu", "krea2", "joyimage", "mage",
    "minimax",
]  # fmt: skip
DualClipKind = Literal[
    "sdxl", "sd3", "flux", "hunyuan_video", "hidream", "hunyuan_image", "hunyuan_video_15", "kandinsky5",
    "kandinsky5_image", "ltxv", "newbie", "ace",
]  # fmt: skip
# The runtime decides where an encoder runs; the answer is the same on either device.
EncoderDevice = Annotated[Literal["default", "cpu"], InOptional(), Options({"advanced": True})]

Loaded = tuple[Model, Clip, Vae]


@node("CheckpointLoaderSimple", display="Load Checkpoint", category=CATEGORY)
def load_checkpoint(ctx: NodeContext, *, ckpt_name: Annotated[str, Files("checkpoints")]) -> Loaded:
    """The model, text encoder and autoencoder of one checkpoint file or diffusers folder."""
    return _parts(ctx.diffusion.inspect_checkpoint(ctx.files.model("checkpoints", ckpt_name)))


@node(
    "CheckpointLoader",
    display="Load Checkpoint With Config (DEPRECATED)",
    category=CATEGORY,
    deprecated=True,
)
def load_checkpoint_with_config(
    ctx: NodeContext,
    *,
    config_name: Annotated[str, Files("configs")],
    ckpt_name: Annotated[str, Files("checkpoints")],
) -> Loaded:
    """As Load Checkpoint, with the prediction type and the CLIP layer that the config file states."""
    model, clip, vae = _parts(ctx.diffusion.inspect_checkpoint(ctx.files.model("checkpoints", ckpt_name)))
    prediction, stop_layer = _from_config(ctx.files.model("configs", config_name))
    if model is not None and prediction is not None:
        model = replace(model, sampling=SamplingOverride(prediction=prediction))
    if clip is not None and stop_layer is not None:
        clip = replace(clip, stop_layer=stop_layer)
    return model, clip, vae


@node("DiffusersLoader", display="Load Diffusers Model (DEPRECATED)", category=CATEGORY, deprecated=True)
def load_diffusers(ctx: NodeContext, *, model_path: Annotated[str, Files("diffusers")]) -> Loaded:
    """The parts of a folder with a model_index.json."""
    return _parts(ctx.diffusion.inspect_checkpoint(ctx.files.model("diffusers", model_path)))


@node("UNETLoader", display="Load Diffusion Model", category=CATEGORY)
def load_diffusion_model(
    ctx: NodeContext,
    *,
    unet_name: Annotated[str, Files("diffusion_models")],
    weight_dtype: Annotated[
        Literal["default", "fp8_e4m3fn", "fp8_e4m3fn_fast", "fp8_e5m2"], Options({"advanced": True})
    ] = "default",
) -> Model:
    """A denoising network from a file of its own, without text encoder and autoencoder."""
    if weight_dtype != "default":
        raise NodeInputError(f"weight_dtype {weight_dtype} is not supported; choose default")
    return ctx.diffusion.inspect_model(ctx.files.model("diffusion_models", unet_name))


@node("CLIPLoader", display="Load CLIP", category=CATEGORY)
def load_clip(
    ctx: NodeContext,
    *,
    clip_name: Annotated[str, Files("text_encoders")],
    type: ClipKind = "stable_diffusion",
    device: EncoderDevice = "default",  # noqa: ARG001
) -> Clip:
    """A text encoder from a file of its own. The type says which family of models it serves."""
    return ctx.diffusion.inspect_clip(_encoder_files(ctx, clip_name), type)


@node("DualCLIPLoader", display="Load CLIP (Dual)", category=CATEGORY)
def load_two_clips(
    ctx: NodeContext,
    *,
    clip_name1: Annotated[str, Files("text_encoders")],
    clip_name2: Annotated[str, Files("text_encoders")],
    type: DualClipKind = "sdxl",
    device: EncoderDevice = "default",  # noqa: ARG001
) -> Clip:
    """Two text encoders that serve a family together, in any order."""
    return ctx.diffusion.inspect_clip(_encoder_files(ctx, clip_name1, clip_name2), type)


@node("TripleCLIPLoader", display="Load CLIP (Triple)", category=CATEGORY)
def load_three_clips(
    ctx: NodeContext,
    *,
    clip_name1: Annotated[str, Files("text_encoders")],
    clip_name2: Annotated[str, Files("text_encoders")],
    clip_name3: Annotated[str, Files("text_encoders")],
) -> Clip:
    """The three text encoders of Stable Diffusion 3: CLIP-L, CLIP-G and T5, in any order."""
    return ctx.diffusion.inspect_clip(_encoder_files(ctx, clip_name1, clip_name2, clip_name3), "sd3")


@node("VAELoader", display="Load VAE", category=CATEGORY)
def load_vae(ctx: NodeContext, *, vae_name: Annotated[str, Files("vae")]) -> Vae:
    """An autoencoder from a file of its own."""
    return ctx.diffusion.inspect_vae(ctx.files.model("vae", vae_name))


@node("LoraLoader", display="Load LoRA (Model and CLIP)", category=CATEGORY)
def load_lora(
    ctx: NodeContext,
    *,
    model: Model,
    clip: Clip,
    lora_name: Annotated[str, Files("loras")],
    strength_model: Strength = 1.0,
    strength_clip: Strength = 1.0,
) -> tuple[Model, Clip]:
    """Adds a LoRA to a model and its text encoder. Strength 0 leaves that part as it is."""
    path = ctx.files.model("loras", lora_name)
    patched = model if strength_model == 0 else model.with_lora(LoraPatch(path, strength_model))
    return patched, clip if strength_clip == 0 else clip.with_lora(LoraPatch(path, strength_clip))


@node("LoraLoaderModelOnly", display="Load LoRA", category=CATEGORY)
def load_lora_model_only(
    ctx: NodeContext,
    *,
    model: Model,
    lora_name: Annotated[str, Files("loras")],
    strength_model: Strength = 1.0,
) -> Model:
    """Adds a LoRA to a model. Strength 0 leaves it as it is."""
    if strength_model == 0:
        return model
    return model.with_lora(LoraPatch(ctx.files.model("loras", lora_name), strength_model))


@node("ControlNetLoader", display="Load ControlNet Model", category=CATEGORY)
def load_control_net(
    ctx: NodeContext, *, control_net_name: Annotated[str, Files("controlnet")]
) -> ControlNet:
    """A ControlNet, to be applied to conditionings."""
    return ctx.diffusion.inspect_control(ctx.files.model("controlnet", control_net_name))


@node("DiffControlNetLoader", display="Load ControlNet Model (diff)", category=CATEGORY)
def load_difference_control_net(
    ctx: NodeContext,
    *,
    model: Model,  # noqa: ARG001
    control_net_name: Annotated[str, Files("controlnet")],
) -> ControlNet:
    """Loads a ControlNet that was saved whole; one saved as the difference to a model is refused."""
    path = ctx.files.model("controlnet", control_net_name)
    if _is_difference(path):
        raise NodeInputError(
            f"{control_net_name} holds the difference to a model; only whole ControlNets are supported"
        )
    return ctx.diffusion.inspect_control(path)


def _parts(checkpoint: Checkpoint) -> tuple[Any, Any, Any]:
    """A part that the file lacks travels as None; the node that needs it says so."""
    return checkpoint.model, checkpoint.clip, checkpoint.vae


def _encoder_files(ctx: NodeContext, *names: str) -> tuple[Path, ...]:
    return tuple(ctx.files.model("text_encoders", name) for name in names)


def _from_config(path: Path) -> tuple[str | None, int | None]:
    """The prediction type and CLIP stop layer of a Stable Diffusion training config."""
    try:
        parameters = yaml.safe_load(path.read_text())["model"]["params"]
        encoder = parameters.get("cond_stage_config", {}).get("params", {})
        layer = encoder.get("layer_idx") if encoder.get("layer") == "hidden" else None
        return ("v" if parameters.get("parameterization") == "v" else None), None if layer is None else int(
            layer
        )
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
        raise NodeInputError(
            f"{path.name} is not a Stable Diffusion config: model.params is missing"
        ) from None


def _is_difference(path: Path) -> bool:
    if path.suffix != ".safetensors":
        return False
    try:
        with safe_open(path, framework="pt") as file:
            return "difference" in file.keys()  # noqa: SIM118
    except SafetensorError:
        raise NodeInputError(f"{path.name} is not a safetensors file") from None
