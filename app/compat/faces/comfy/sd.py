"""`comfy.sd`: loading of models by this program's runtimes. Weights load with the first request for them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from app.compat.asking import running_node
from app.compat.models import ClipFace, ModelFace, VaeFace
from app.compat.named import Refused, named

CLIP, VAE, StyleModel = named("comfy.sd", "CLIP", "VAE", "StyleModel")
(
    load_diffusion_model_state_dict,
    load_state_dict_guess_config,
    load_text_encoder_state_dicts,
    load_style_model,
) = named(
    "comfy.sd",
    "load_diffusion_model_state_dict",
    "load_state_dict_guess_config",
    "load_text_encoder_state_dicts",
    "load_style_model",
)


class CLIPType(Enum):
    STABLE_DIFFUSION = 1
    STABLE_CASCADE = 2
    SD3 = 3
    STABLE_AUDIO = 4
    HUNYUAN_DIT = 5
    FLUX = 6
    MOCHI = 7
    LTXV = 8
    HUNYUAN_VIDEO = 9
    PIXART = 10
    COSMOS = 11
    LUMINA2 = 12
    WAN = 13
    HIDREAM = 14
    CHROMA = 15
    ACE = 16
    OMNIGEN2 = 17
    QWEN_IMAGE = 18
    HUNYUAN_IMAGE = 19


def load_checkpoint_guess_config(
    ckpt_path: str,
    output_vae: bool = True,
    output_clip: bool = True,
    output_clipvision: bool = False,
    embedding_directory: Any = None,
    output_model: bool = True,
    **_options: Any,
) -> tuple[ModelFace | None, ClipFace | None, VaeFace | None, None]:
    """(model, clip, vae, None); a part that the checkpoint lacks is None."""
    if output_clipvision:
        raise Refused("Treadle loads no CLIP vision model from a checkpoint")
    found = running_node().diffusion.inspect_checkpoint(Path(ckpt_path))
    return (
        ModelFace(found.model) if output_model and found.model is not None else None,
        ClipFace(found.clip) if output_clip and found.clip is not None else None,
        VaeFace(found.vae) if output_vae and found.vae is not None else None,
        None,
    )


def load_checkpoint(
    config_path: str | None = None,
    ckpt_path: str | None = None,
    output_vae: bool = True,
    output_clip: bool = True,
    embedding_directory: Any = None,
    state_dict: Any = None,
    config: Any = None,
) -> tuple[ModelFace | None, ClipFace | None, VaeFace | None]:
    if ckpt_path is None or state_dict is not None:
        raise Refused("Treadle loads checkpoints by their path")
    return load_checkpoint_guess_config(ckpt_path, output_vae, output_clip)[:3]


def load_diffusion_model(unet_path: str, model_options: Any = None, **_options: Any) -> ModelFace:
    return ModelFace(running_node().diffusion.inspect_model(Path(unet_path)))


load_unet = load_diffusion_model


def load_clip(
    ckpt_paths: Sequence[str],
    embedding_directory: Any = None,
    clip_type: CLIPType = CLIPType.STABLE_DIFFUSION,
    **_options: Any,
) -> ClipFace:
    paths = tuple(Path(path) for path in ckpt_paths)
    return ClipFace(running_node().diffusion.inspect_clip(paths, clip_type.name.lower()))


def load_lora_for_models(
    model: ModelFace | None,
    clip: ClipFace | None,
    lora: Any,
    strength_model: float,
    strength_clip: float,
    *_rest: Any,
) -> Any:
    """What `comfy.utils.load_torch_file` returned remembers its file, from which the runtime loads it."""
    from runtime.diffusion.api import LoraPatch

    path = getattr(lora, "path", None)
    if path is None:
        raise Refused(
            "Treadle adds LoRAs by their file: give load_lora_for_models what load_torch_file returned"
        )
    changed_model = (
        ModelFace(model.ref.with_lora(LoraPatch(path, strength_model))) if model is not None else None
    )
    changed_clip = ClipFace(clip.ref.with_lora(LoraPatch(path, strength_clip))) if clip is not None else None
    return changed_model, changed_clip
