"""Whether a model's weights fit into memory, told from file headers before anything is read.

Without this a model that is too large takes the whole process down at load.
"""

from __future__ import annotations

import math
from pathlib import Path

import psutil
import torch
from torch import nn

from runtime.platform.checkpoint import read_shapes
from runtime.platform.errors import OutOfMemory
from runtime.platform.gguf_file import read_gguf

# Weights plus what loading and packing hold for a moment.
_ROOM = 1.2


def check_fits(path: Path, device: torch.device, dtype: torch.dtype) -> None:
    """Raises `OutOfMemory` with the sizes."""
    needed = count(path) * dtype.itemsize * _ROOM
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    else:
        free = psutil.virtual_memory().available
    if needed > free:
        name = str(dtype).removeprefix("torch.")
        raise OutOfMemory(f"{path.name} needs {_gib(needed)} in {name}, and {_gib(free)} are free")


def count(path: Path) -> int:
    """Numbers in a GGUF file, or in the safetensors files of a folder; other formats count as nothing."""
    if path.is_file():
        return sum(math.prod(tensor.shape) for tensor in read_gguf(path).tensors.values())
    headers = [read_shapes(file) for file in sorted(path.glob("*.safetensors"))]
    return sum(math.prod(shape) for header in headers for shape in header.values())


def held(network: nn.Module) -> int:
    """Bytes of a loaded network's weights, those of packed layers included."""
    plain = sum(each.numel() * each.element_size() for each in network.parameters())
    return plain + sum(int(getattr(module, "packed_bytes", 0)) for module in network.modules())


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
