"""LoRA: low-rank additions merged into a module's weights when it is loaded.

diffusers translates the many spellings of keys; what is left here is the sum. A module with another set of
LoRAs is another module, so rows with different sets never share a forward.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.diffusion.api import LoraPatch
from runtime.platform.checkpoint import read_tensors
from runtime.platform.errors import MissingFile, Unsupported

_OTHER_KINDS = {"dora_scale": "DoRA", "lokr_": "LoKr", "hada_": "LoHa", "oft_": "OFT"}


@dataclass(frozen=True, slots=True)
class LoraNaming:
    """`mixin` is the diffusers class that knows a family's key spellings."""

    mixin: str
    takes_unet_config: bool = False


def merge_loras(
    module: Any, loras: Sequence[LoraPatch], naming: LoraNaming, prefix: str, unet: Any = None
) -> None:
    """Add every LoRA to the weights it names below `prefix` (unet, transformer, text_encoder ...)."""
    for lora in loras:
        _merge(module, lora, naming, prefix, unet)


def _merge(module: Any, lora: LoraPatch, naming: LoraNaming, prefix: str, unet: Any) -> None:
    tensors = _read(lora, naming, unet)
    downs = {name for name in tensors if name.startswith(f"{prefix}.") and name.endswith(".lora_A.weight")}
    merged = 0
    for name in sorted(downs):
        target = _weight(module, name.removeprefix(f"{prefix}.").removesuffix(".lora_A.weight"))
        if target is None:
            continue
        down, up = tensors[name].float(), tensors[name.replace(".lora_A.", ".lora_B.")].float()
        # a convolution's [r, I, k, k] and [O, r, 1, 1] are matrices too
        change = (up.flatten(1) @ down.flatten(1)).reshape(target.shape)
        target.copy_(target.float() + lora.strength * change.to(target.device))
        merged += 1
    if downs and merged == 0:
        raise Unsupported(
            f"the LoRA {lora.path.name} does not fit this model: none of its {len(downs)} layers is in it"
        )


def _read(lora: LoraPatch, naming: LoraNaming, unet: Any) -> dict[str, torch.Tensor]:
    """Tensors named `<prefix>.<module>.lora_A.weight` and `.lora_B.weight`."""
    if not lora.path.is_file():
        raise MissingFile(f"the LoRA {lora.path} is not on disk")
    tensors = read_tensors(lora.path)
    for mark, kind in _OTHER_KINDS.items():
        if any(mark in name for name in tensors):
            raise Unsupported(f"{lora.path.name} is a {kind}; of the adapters only plain LoRA is supported")
    diffusers = importlib.import_module("diffusers")
    loaders = importlib.import_module("diffusers.loaders")
    spelling = {"unet_config": unet.config} if naming.takes_unet_config and unet is not None else {}
    try:
        found = getattr(loaders, naming.mixin).lora_state_dict(_with_alphas_applied(tensors), **spelling)
    except (ValueError, KeyError, IndexError) as error:
        raise Unsupported(f"the LoRA {lora.path.name} is in no spelling that is known: {error}") from error
    state = found[0] if isinstance(found, tuple) else found
    text = {name: tensor for name, tensor in state.items() if name.startswith("text_encoder")}
    rest = {name: tensor for name, tensor in state.items() if name not in text}
    return {
        **diffusers.utils.convert_unet_state_dict_to_peft(rest),
        **{_text_name(name): tensor for name, tensor in text.items()},
    }


def _text_name(name: str) -> str:
    """Text encoders keep older spellings than networks."""
    for letter, new in {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj"}.items():
        name = name.replace(f".to_{letter}_lora.", f".{new}.lora_linear_layer.")
    return name.replace(".lora_linear_layer.down.", ".lora_A.").replace(".lora_linear_layer.up.", ".lora_B.")


def _with_alphas_applied(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Scales by alpha / rank now and leaves an alpha equal to the rank, which every converter reads as 1."""
    applied = dict(tensors)
    for name, alpha in tensors.items():
        layer = name.removesuffix(".alpha")
        downs = [down for down in (f"{layer}.lora_down.weight", f"{layer}.lora_A.weight") if down in tensors]
        if layer != name and downs:
            rank = tensors[downs[0]].shape[0]
            applied[downs[0]] = tensors[downs[0]].float() * (alpha.float() / rank)
            applied[name] = torch.tensor(float(rank))
    return applied


def _weight(module: Any, name: str) -> torch.Tensor | None:
    """A submodule's weight. transformers 5 dropped the `text_model` level that LoRAs of CLIP still name."""
    for candidate in (name, name.removeprefix("text_model.")):
        try:
            weight: torch.Tensor = module.get_submodule(candidate).weight
        except AttributeError:
            continue
        return weight
    return None
