"""Which text encoders a file or folder holds, by role: clip_l, clip_g, clip_h, t5, qwen3, language_features.

Headers and configurations only; encoders.py makes modules of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.diffusion.families.architecture import Signature
from runtime.diffusion.parts import Part, is_pipeline
from runtime.platform.checkpoint import read_config, read_shapes, under
from runtime.platform.errors import MissingFile, Unsupported

_SUBFOLDERS = ("text_encoder", "text_encoder_2", "text_encoder_3")
_HF_CLIP = "text_model.embeddings.token_embedding.weight"
_OPEN_CLIP = "token_embedding.weight"
_T5 = Signature({"encoder.block.0.layer.0.SelfAttention.q.weight": None, "shared.weight": None})
_QWEN3 = Signature({"model.layers.0.self_attn.q_norm.weight": None, "model.embed_tokens.weight": None})


@dataclass(frozen=True, slots=True)
class EncoderPart:
    """`tokenizer` is a folder that may exist; where it does not, encoders.py looks further."""

    role: str
    part: Part
    tokenizer: Path


@dataclass(frozen=True, slots=True)
class _Place:
    """Tensors below `prefix` that match are the encoder `role`. Without a prefix the width tells the role."""

    role: str
    prefix: str
    signature: Signature


_PLACES = (
    _Place("clip_l", "cond_stage_model.transformer.", Signature({_HF_CLIP: None})),
    _Place("clip_h", "cond_stage_model.model.", Signature({_OPEN_CLIP: None})),
    _Place("clip_l", "conditioner.embedders.0.transformer.", Signature({_HF_CLIP: None})),
    _Place("clip_g", "conditioner.embedders.1.model.", Signature({_OPEN_CLIP: None})),
    _Place("clip_l", "text_encoders.clip_l.transformer.", Signature({_HF_CLIP: None})),
    _Place("clip_g", "text_encoders.clip_g.transformer.", Signature({_HF_CLIP: None})),
    _Place("t5", "text_encoders.t5xxl.transformer.", _T5),
    _Place("qwen3", "text_encoders.qwen3_4b.transformer.", _QWEN3),
    _Place("clip_l", "", Signature({_HF_CLIP: (49408, 768)})),
    _Place("clip_g", "", Signature({_HF_CLIP: (49408, 1280)})),
    _Place("clip_h", "", Signature({_HF_CLIP: (49408, 1024)})),
    _Place("clip_g", "", Signature({_OPEN_CLIP: (49408, 1280)})),
    _Place("clip_h", "", Signature({_OPEN_CLIP: (49408, 1024)})),
    _Place("t5", "", _T5),
    _Place("qwen3", "", _QWEN3),
)


def find_encoders(path: Path, roles: Sequence[str] = ()) -> tuple[EncoderPart, ...]:
    """All encoders at a path. `roles` name the text_encoder folders of a pipeline, in order."""
    if not path.exists():
        raise MissingFile(f"{path} is not on disk")
    if is_pipeline(path):
        return _in_pipeline(path, roles)
    if path.is_dir():
        return (EncoderPart(_role_of_folder(path), Part(path), path.parent / _tokenizer_name(path.name)),)
    return _in_file(path)


def _in_pipeline(path: Path, roles: Sequence[str]) -> tuple[EncoderPart, ...]:
    found = []
    for role, name in zip(roles, _SUBFOLDERS):
        folder = path / name
        if (folder / "config.json").is_file():
            features = "language_model" in read_config(folder)
            tokenizer = path / _tokenizer_name(name)
            found.append(EncoderPart("language_features" if features else role, Part(folder), tokenizer))
    return tuple(found)


def _in_file(path: Path) -> tuple[EncoderPart, ...]:
    shapes = read_shapes(path)
    found: dict[str, EncoderPart] = {}
    for place in _PLACES:
        if place.role not in found and place.signature.matches(under(shapes, place.prefix)):
            found[place.role] = EncoderPart(place.role, Part(path, place.prefix), path.parent / "tokenizer")
    return tuple(found.values())


def _role_of_folder(folder: Path) -> str:
    config = read_config(folder)
    if "language_model" in config:
        return "language_features"
    roles: dict[tuple[object, object], str] = {
        ("clip_text_model", 768): "clip_l",
        ("clip_text_model", 1024): "clip_h",
        ("clip_text_model", 1280): "clip_g",
    }
    kind = config.get("model_type")
    role = kind if kind in ("t5", "qwen3") else roles.get((kind, config.get("hidden_size")))
    if role is None:
        raise Unsupported(f"{folder} is no text encoder that is known; supported: CLIP L, G and H, T5, Qwen3")
    return str(role)


def _tokenizer_name(folder_name: str) -> str:
    return folder_name.replace("text_encoder", "tokenizer") if "text_encoder" in folder_name else "tokenizer"
