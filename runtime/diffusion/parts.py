"""Where the parts of a checkpoint lie, whatever its layout, and how one part becomes a diffusers module.

A part is a component folder with its config.json, or the tensors of a single file below a prefix.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from runtime.diffusion.scales import without_scales
from runtime.platform.checkpoint import Shapes, first_prefix, read_config, read_shapes, read_tensors, under
from runtime.platform.errors import MissingFile, Unsupported

if TYPE_CHECKING:
    import torch

NETWORK_PREFIXES = ("model.diffusion_model.", "diffusion_model.")
AUTOENCODER_PREFIXES = ("first_stage_model.", "vae.")
# diffusers' converter of these classes looks for its keys below a prefix; the others take them bare
_CONVERTER_PREFIX = {"UNet2DConditionModel": "model.diffusion_model."}


@dataclass(frozen=True, slots=True)
class Part:
    """`prefix` belongs to a single file; a folder has none."""

    path: Path
    prefix: str = ""

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @property
    def variant(self) -> str | None:
        """The half-precision files of a folder that holds no others."""
        names = [file.name for file in self.path.glob("*.safetensors*")]
        return "fp16" if names and all(".fp16." in name for name in names) else None

    def config(self) -> dict[str, Any]:
        return read_config(self.path)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return under(read_shapes(self.path), self.prefix)

    def size_bytes(self, bytes_per_number: int) -> int:
        """About what the part takes when it is loaded, without loading it."""
        if self.is_folder:
            return sum(file.stat().st_size for file in self.path.glob("*.safetensors"))
        return sum(math.prod(shape) for shape in self.shapes().values()) * bytes_per_number

    def tensors(self) -> dict[str, torch.Tensor]:
        return without_scales(read_tensors(self.path, self.prefix), self.path.name)


def is_pipeline(path: Path) -> bool:
    """Whether the path is a whole diffusers folder."""
    return (path / "model_index.json").is_file()


def subfolder(path: Path, *names: str) -> Part | None:
    """The first of the named component folders of a diffusers folder."""
    return next((Part(path / name) for name in names if (path / name / "config.json").is_file()), None)


def network_part(path: Path) -> Part | None:
    """The denoising network of a checkpoint; None where a diffusers folder has none."""
    if not path.exists():
        raise MissingFile(f"{path} is not on disk")
    if is_pipeline(path):
        return subfolder(path, "transformer", "unet")
    if path.is_dir():
        return Part(path)
    return Part(path, first_prefix(read_shapes(path), NETWORK_PREFIXES) or "")


def autoencoder_part(path: Path) -> Part | None:
    """The autoencoder of a checkpoint; None where it has none."""
    if not path.exists():
        raise MissingFile(f"{path} is not on disk")
    if is_pipeline(path):
        return subfolder(path, "vae")
    if path.is_dir():
        return Part(path)
    shapes = read_shapes(path)
    prefix = first_prefix(shapes, AUTOENCODER_PREFIXES) or ""
    return Part(path, prefix) if f"{prefix}decoder.conv_in.weight" in shapes else None


def load_diffusers(
    part: Part,
    class_name: str,
    config_of: Callable[[Shapes], Mapping[str, Any]],
    *,
    dtype: torch.dtype,
    device: str,
) -> Any:
    """A diffusers module in evaluation mode. `config_of` tells a file's configuration from its shapes."""
    module_class = getattr(importlib.import_module("diffusers"), class_name)
    if part.is_folder:
        module, loading = module_class.from_pretrained(
            part.path,
            dtype=dtype,
            variant=part.variant,
            local_files_only=True,
            output_loading_info=True,
        )
        missing = sorted(loading["missing_keys"])
    else:
        module = _from_single_file(module_class, part, config_of, dtype)
        missing = [name for name, parameter in module.named_parameters() if parameter.is_meta]
    if missing:
        raise Unsupported(f"{part.path} is not a complete {class_name}: it lacks {', '.join(missing[:3])}")
    return module.requires_grad_(False).eval().to(device)


def _from_single_file(
    module_class: Any, part: Part, config_of: Callable[[Shapes], Mapping[str, Any]], dtype: torch.dtype
) -> Any:
    tensors = part.tensors()
    config = dict(config_of({name: tuple(tensor.shape) for name, tensor in tensors.items()}))
    prefix = _CONVERTER_PREFIX.get(module_class.__name__, "")
    tensors = {f"{prefix}{name}": tensor for name, tensor in tensors.items()}
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps({"_class_name": module_class.__name__, **config}))
        return module_class.from_single_file(tensors, config=folder, dtype=dtype, local_files_only=True)
