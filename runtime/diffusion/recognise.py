"""What a path holds, told from headers and configurations: fast, and safe to call from any thread.

Weights are loaded by model.py when a request first needs them.
"""

from __future__ import annotations

from pathlib import Path

from runtime.diffusion.api import Checkpoint, ControlRef, ModelRef, TextEncoderRef, VaeRef
from runtime.diffusion.encoder_parts import find_encoders
from runtime.diffusion.families.architecture import Architecture
from runtime.diffusion.families.catalog import ARCHITECTURES
from runtime.diffusion.parts import Part, autoencoder_part, is_pipeline, network_part
from runtime.diffusion.vae import autoencoder_kind
from runtime.platform.checkpoint import read_config, read_shapes
from runtime.platform.errors import MissingFile, Unsupported

_DIFFUSERS_MARKS = (
    "down_blocks.0.resnets.0.conv1.weight",
    "transformer_blocks.0.attn.to_q.weight",
)


def inspect_checkpoint(path: Path) -> Checkpoint:
    """A diffusers folder or an all-in-one file. A part that it lacks is None."""
    network = network_part(path)
    if network is None:
        raise Unsupported(f"{path} holds no transformer and no unet folder")
    architecture = _architecture(path, network)
    encoders = find_encoders(path, architecture.encoders) if is_pipeline(path) or path.is_file() else ()
    clip = TextEncoderRef(weights=(path,), family=architecture.name) if encoders else None
    return Checkpoint(ModelRef(path, architecture.name), clip, _vae_of_checkpoint(path))


def inspect_model(path: Path) -> ModelRef:
    """A denoising network alone, or the one within a checkpoint."""
    network = network_part(path)
    if network is None:
        raise Unsupported(f"{path} holds no transformer and no unet folder")
    return ModelRef(path, _architecture(path, network).name)


def inspect_clip(paths: tuple[Path, ...], kind: str) -> TextEncoderRef:
    """Text encoders in files or folders; `kind` is a CLIPLoader type, read where files leave a choice."""
    found = [encoder.role for path in paths for encoder in find_encoders(path, _pipeline_roles(path))]
    if not found:
        names = ", ".join(path.name for path in paths)
        raise Unsupported(f"{names}: no text encoder was found; supported: CLIP L, G and H, T5, Qwen3")
    telling = {"clip_h": "sd2", "qwen3": "z_image", "language_features": "sd3"}
    family = next((telling[role] for role in found if role in telling), None) or _family_of_kind(kind, found)
    return TextEncoderRef(weights=paths, family=family)


def inspect_vae(path: Path) -> VaeRef:
    """An autoencoder alone, or the one within a checkpoint."""
    part = autoencoder_part(path)
    if part is None:
        raise Unsupported(f"{path.name} holds no autoencoder; supported: AutoencoderKL and AutoencoderDC")
    return _vae_ref(path, part)


def inspect_control(path: Path) -> ControlRef:
    """A ControlNet of a UNet family."""
    if not path.exists():
        raise MissingFile(f"{path} is not on disk")
    if path.is_dir():
        is_control = read_config(path).get("_class_name") == "ControlNetModel"
    else:
        shapes = read_shapes(path)
        marks = (
            "control_model.zero_convs.0.0.weight",
            "zero_convs.0.0.weight",
            "controlnet_down_blocks.0.weight",
        )
        is_control = any(mark in shapes for mark in marks)
    if not is_control:
        raise Unsupported(f"{path.name} is not a ControlNet of a UNet family (SD1.5, SD2, SDXL)")
    return ControlRef(path, "unet")


def _architecture(path: Path, network: Part) -> Architecture:
    return _by_config(path, network) if network.is_folder else _by_shapes(path, network)


def _by_config(path: Path, network: Part) -> Architecture:
    config = network.config()
    scheduler = path / "scheduler"
    if (scheduler / "scheduler_config.json").is_file():
        facts = read_config(scheduler, "scheduler_config.json")
        config = {**config, "prediction_type": facts.get("prediction_type", "epsilon")}
    for architecture in ARCHITECTURES:
        if architecture.has_facts(config):
            return architecture
    raise Unsupported(f"{path.name} is a {config.get('_class_name')}; supported families: {_family_names()}")


def _by_shapes(path: Path, network: Part) -> Architecture:
    shapes = read_shapes(path)
    # marker keys lie outside the network's prefix
    seen = {**shapes, **network.shapes()}
    for architecture in ARCHITECTURES:
        if architecture.fits_file(seen, network):
            return architecture
    if any(mark in seen for mark in _DIFFUSERS_MARKS):
        raise Unsupported(
            f"{path.name} has diffusers' names: keep it in its folder with config.json and load that"
        )
    raise Unsupported(f"{path.name} is of no family that is known; supported: {_family_names()}")


def _family_names() -> str:
    return ", ".join(architecture.name for architecture in ARCHITECTURES)


def _vae_of_checkpoint(path: Path) -> VaeRef | None:
    if path.is_dir() and not is_pipeline(path):
        return None
    part = autoencoder_part(path)
    return None if part is None else _vae_ref(path, part)


def _vae_ref(path: Path, part: Part) -> VaeRef:
    kind = autoencoder_kind(part)
    return VaeRef(path, kind.family, kind.channels, kind.factor)


def _pipeline_roles(path: Path) -> tuple[str, ...]:
    if not is_pipeline(path):
        return ()
    network = network_part(path)
    return _architecture(path, network).encoders if network else ()


def _family_of_kind(kind: str, found: list[str]) -> str:
    if kind == "stable_diffusion" and "clip_g" in found:
        return "sdxl"
    for architecture in ARCHITECTURES:
        if kind in architecture.clip_kinds:
            unused = [role for role in found if role not in architecture.encoders]
            if unused:
                wanted = ", ".join(architecture.encoders)
                raise Unsupported(f"text encoder type {kind} takes {wanted}, not {', '.join(unused)}")
            return architecture.name
    kinds = ", ".join(kind for architecture in ARCHITECTURES for kind in architecture.clip_kinds)
    raise Unsupported(f"text encoder type {kind} is not supported; supported: {kinds}")
