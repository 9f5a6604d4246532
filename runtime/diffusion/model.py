"""Loads what references name and keeps it, least recently used out first, within a budget of bytes.

Only the device's thread loads; the `inspect_*` functions read headers and may be called from any thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import psutil
import torch

from runtime.diffusion.api import ControlRef, LoraPatch, ModelRef, TextEncoderRef, VaeRef
from runtime.diffusion.control import load_control_net
from runtime.diffusion.families.architecture import LoadContext
from runtime.diffusion.families.base import Autoencoder, Family, LatentFormat, Network, TextEncoder
from runtime.diffusion.families.catalog import ARCHITECTURES
from runtime.diffusion.families.clip import encoders_by_role
from runtime.diffusion.latents import fit_rgb
from runtime.diffusion.parts import Part, autoencoder_part, network_part
from runtime.diffusion.recognise import (
    inspect_checkpoint,
    inspect_clip,
    inspect_control,
    inspect_model,
    inspect_vae,
)
from runtime.diffusion.vae import load_autoencoder
from runtime.platform.building import building
from runtime.platform.errors import RuntimeFault, Unsupported
from runtime.platform.registry import Registry

__all__ = ["Loader", "inspect_checkpoint", "inspect_clip", "inspect_control", "inspect_model", "inspect_vae"]

T = TypeVar("T")

_SHARE_OF_MEMORY = 0.7


class Loader:
    """`dtype` is what networks and text encoders compute in; autoencoders use float32 where that is float16.

    `network`, `text_encoder` and `autoencoder` return at once what is resident: they may be called for each
    forward. What they give stays usable while somebody holds it, even once it is put out.
    """

    def __init__(
        self,
        language_models: Callable[[], Mapping[str, Path]],
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        budget_bytes: int | None = None,
    ) -> None:
        self._context = LoadContext(device, dtype, language_models, self._control_net)
        self._budget_bytes = budget_bytes or int(_SHARE_OF_MEMORY * _memory_bytes(device))
        self._resident: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._families: Registry[Family] = Registry("diffusion family")
        for architecture in ARCHITECTURES:
            self._families.register(architecture.name)(architecture.create(self._context))
        self._latent_formats: dict[tuple[Path, str], LatentFormat] = {}

    def family(self, ref: ModelRef | TextEncoderRef) -> Family:
        return self._families[ref.family]

    def latent_format(self, ref: ModelRef) -> LatentFormat:
        """The family's format. It has preview colours where the model's checkpoint brings its autoencoder."""
        key = (ref.weights, ref.family)
        if key not in self._latent_formats:
            self._latent_formats[key] = self._with_colours(ref, self.family(ref).latent_format(ref))
        return self._latent_formats[key]

    def _with_colours(self, ref: ModelRef, latent_format: LatentFormat) -> LatentFormat:
        try:
            if autoencoder_part(ref.weights) is None:
                return latent_format
            autoencoder = self.autoencoder(inspect_vae(ref.weights))
        except RuntimeFault:
            # pictures are decoded by another one then; here only previews are lost
            return latent_format
        if autoencoder.channels != latent_format.channels:
            return latent_format
        fit = fit_rgb(autoencoder, latent_format, self._context.device)
        return replace(latent_format, rgb=fit.rgb, rgb_bias=fit.bias)

    def network(self, ref: ModelRef) -> Network:
        weights = replace(ref, sampling=None, loras=_effective(ref.loras))
        return self._load(
            weights, lambda: self.family(ref).load_network(weights), lambda: [network_part(ref.weights)]
        )

    def text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        weights = replace(ref, loras=_effective(ref.loras))
        return self._load(
            weights, lambda: self.family(ref).load_text_encoder(weights), lambda: _encoders(ref)
        )

    def autoencoder(self, ref: VaeRef) -> Autoencoder:
        context = self._context
        load = partial(load_autoencoder, ref, context.dtype, context.device)
        return self._load(ref, load, lambda: [autoencoder_part(ref.weights)])

    def unload(self) -> None:
        """Forget all weights; what somebody still holds lives on until it is let go."""
        self._resident.clear()
        if self._context.device.startswith("cuda"):
            torch.cuda.empty_cache()

    @property
    def resident_bytes(self) -> int:
        return sum(size for _, size in self._resident.values())

    def _control_net(self, ref: ControlRef) -> torch.nn.Module:
        context = self._context
        load = partial(load_control_net, ref, context.dtype, context.device)
        return self._load(ref, load, lambda: [Part(ref.weights)])

    def _load(self, key: Hashable, load: Callable[[], T], parts: Callable[[], Sequence[Part | None]]) -> T:
        if key in self._resident:
            self._resident.move_to_end(key)
            return cast(T, self._resident[key][0])
        found = [part for part in parts() if part is not None]
        self._make_room(sum(part.size_bytes(self._context.dtype.itemsize) for part in found))
        try:
            with building:
                loaded = load()
        except (RuntimeFault, torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # the libraries raise what they like about a damaged file
            names = ", ".join(str(part.path) for part in found)
            raise Unsupported(f"could not load {names}: {type(error).__name__}: {error}") from error
        self._resident[key] = (loaded, _size_bytes(loaded))
        self._make_room(0, keep=key)
        return loaded

    def _make_room(self, wanted_bytes: int, keep: Hashable = None) -> None:
        while self._resident and self.resident_bytes + wanted_bytes > self._budget_bytes:
            oldest = next(iter(self._resident))
            if oldest == keep:
                return
            del self._resident[oldest]


def _size_bytes(loaded: object) -> int:
    """The parameters and buffers of a module, or of the modules that an object holds."""
    modules = [loaded] if isinstance(loaded, torch.nn.Module) else getattr(loaded, "modules", ())
    tensors = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _effective(loras: tuple[LoraPatch, ...]) -> tuple[LoraPatch, ...]:
    """Strength 0 is no LoRA, not a copy of the weights."""
    return tuple(lora for lora in loras if lora.strength != 0)


def _encoders(ref: TextEncoderRef) -> list[Part]:
    roles = next(each.encoders for each in ARCHITECTURES if each.name == ref.family)
    return [encoder.part for encoder in encoders_by_role(ref, roles).values()]


def _memory_bytes(device: str) -> int:
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[1])
    return int(psutil.virtual_memory().total)
