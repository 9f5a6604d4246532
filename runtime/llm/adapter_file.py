"""A LoRA folder as peft saves it: low-rank pairs by the names of the layers that they change.

It knows no network. What is more than plain LoRA is refused by its name.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from runtime.platform.checkpoint import read_config, read_tensors
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"

_PREFIX = "base_model.model."
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"
# They say how an adapter was trained, or what is seen from its weights anyway.
_SAYS_NOTHING = frozenset(
    [
        *["auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "task_type", "peft_type"],
        *["peft_version", "r", "lora_alpha", "lora_dropout", "target_modules", "exclude_modules", "bias"],
        *["fan_in_fan_out", "init_lora_weights", "layers_to_transform", "layers_pattern", "rank_pattern"],
        *["alpha_pattern", "megatron_core", "loftq_config", "eva_config", "use_rslora", "runtime_config"],
        *["qalora_group_size", "ensure_weight_tying"],
    ]
)
# Others take something out of the model's own weights, which peft would do anew.
_PLAIN_STARTS = (True, False, "gaussian", "orthogonal", "eva")


@dataclass(frozen=True, slots=True)
class LowRank:
    """What a layer adds: x `down`^T `up`^T, with the scale in `up`."""

    down: torch.Tensor  # [r, I]
    up: torch.Tensor  # [O, r]

    @property
    def num_bytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in (self.down, self.up))


@dataclass(frozen=True, slots=True)
class AdapterFile:
    """`hash` is that of both files, 32 bytes."""

    layers: Mapping[str, LowRank]
    hash: bytes


def read(folder: Path) -> AdapterFile:
    """Raises `MissingFile` or `Unsupported` with a sentence."""
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise MissingFile(f"the adapter {folder.name} has no {name}")
    config = read_config(folder, CONFIG)
    _check_config(config, folder.name)
    stored = read_tensors(folder / WEIGHTS)
    tensors = {name.removeprefix(_PREFIX): each for name, each in stored.items()}
    strange = [name for name in tensors if not name.endswith((_DOWN, _UP))]
    if strange or not tensors:
        what = f"holds {strange[0]}" if strange else "holds nothing"
        raise Unsupported(f"the adapter {folder.name} {what}; supported are pairs of lora_A and lora_B only")
    layers = {
        name.removesuffix(_DOWN): _pair(name, tensors, config, folder.name)
        for name in sorted(tensors)
        if name.endswith(_DOWN)
    }
    if 2 * len(layers) != len(tensors):
        raise Unsupported(f"the adapter {folder.name} has a lora_B without its lora_A")
    return AdapterFile(layers, _hash(folder))


def base_name(folder: Path) -> str | None:
    """The last part of the name of the model that it was trained on, if it tells."""
    try:
        named = read_config(folder, CONFIG).get("base_model_name_or_path")
    except RuntimeFault:
        return None
    return Path(named).name if isinstance(named, str) else None


def stamp(folder: Path) -> tuple[tuple[int, int], ...]:
    """Changes when the files may have changed; raises `MissingFile`."""
    try:
        found = [(folder / name).stat() for name in (CONFIG, WEIGHTS)]
    except OSError as error:
        raise MissingFile(f"the adapter {folder.name} cannot be read: {error.strerror}") from error
    return tuple((each.st_mtime_ns, each.st_size) for each in found)


def _check_config(config: Mapping[str, Any], name: str) -> None:
    kind = str(config.get("peft_type"))
    if kind.removeprefix("PeftType.").upper() != "LORA":
        raise Unsupported(f"the adapter {name} is a {kind}; supported is LORA")
    if config.get("use_dora"):
        raise Unsupported(f"the adapter {name} is a DoRA; supported is plain LoRA, with or without rsLoRA")
    if config.get("bias", "none") != "none":
        raise Unsupported(f"the adapter {name} changes biases; supported are adapters with bias 'none'")
    if config.get("init_lora_weights", True) not in _PLAIN_STARTS:
        raise Unsupported(
            f"the adapter {name} began as {config['init_lora_weights']}, which changes the model's own"
            " weights; save it converted to plain LoRA"
        )
    others = sorted(field for field, value in config.items() if value and field not in _SAYS_NOTHING)
    if others:
        raise Unsupported(f"the adapter {name} sets {', '.join(others)}; supported is plain LoRA")
    if not isinstance(config.get("r"), int) or not isinstance(config.get("lora_alpha"), int | float):
        raise Unsupported(f"the configuration of the adapter {name} lacks r or lora_alpha")


def _pair(name: str, tensors: Mapping[str, torch.Tensor], config: Mapping[str, Any], adapter: str) -> LowRank:
    layer = name.removesuffix(_DOWN)
    down, up = tensors[name], tensors.get(layer + _UP)
    if up is None:
        raise Unsupported(f"the adapter {adapter} has no lora_B for {layer}")
    if down.dim() != 2 or up.dim() != 2 or up.shape[1] != down.shape[0]:
        shapes = f"{tuple(down.shape)} and {tuple(up.shape)}"
        raise Unsupported(f"the adapter {adapter} has no low-rank pair at {layer}: the shapes are {shapes}")
    rank = _by_pattern(config.get("rank_pattern"), layer, config["r"])
    if down.shape[0] != rank:
        raise Unsupported(
            f"the adapter {adapter} has rank {down.shape[0]} at {layer} where its configuration says {rank}"
        )
    alpha = _by_pattern(config.get("alpha_pattern"), layer, config["lora_alpha"])
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    return LowRank(down, up.float() * scale)


def _by_pattern(patterns: Mapping[str, Any] | None, layer: str, otherwise: Any) -> Any:
    """As peft reads them: the first pattern that the end of a layer's name matches, from a dot on."""
    for pattern, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", layer):
            return value
    return otherwise


def _hash(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS):
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.digest()
