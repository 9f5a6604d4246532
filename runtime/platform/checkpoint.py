"""What safetensors files hold, read from their headers alone; tensors are read only when asked for.

It knows file layouts, not models.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.platform.errors import MissingFile, Unsupported

if TYPE_CHECKING:
    import torch

Shapes = Mapping[str, tuple[int, ...]]

_HEADER_LIMIT_BYTES = 100 << 20


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Every tensor's name and shape, without touching the tensors."""
    header = _read_header(path)
    header.pop("__metadata__", None)
    try:
        return {name: tuple(int(size) for size in entry["shape"]) for name, entry in header.items()}
    except (TypeError, KeyError, ValueError) as error:
        raise Unsupported(f"{path.name} is damaged: its header names no shapes") from error


def read_tensors(path: Path, prefix: str = "") -> dict[str, torch.Tensor]:
    """The tensors whose names begin with `prefix`, under their names without it."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            return {name[len(prefix) :]: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise Unsupported(f"{path.name} is damaged: {error}") from error


def under(shapes: Shapes, prefix: str) -> dict[str, tuple[int, ...]]:
    """The part of a header below a prefix, without the prefix."""
    return {name[len(prefix) :]: shape for name, shape in shapes.items() if name.startswith(prefix)}


def first_prefix(shapes: Shapes, prefixes: Iterable[str]) -> str | None:
    """The first of the prefixes that any tensor has."""
    return next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in shapes)), None)


def count_layers(shapes: Shapes, prefix: str) -> int:
    """How many numbered entries follow a prefix such as `blocks.`: one more than the highest number."""
    numbers = (name[len(prefix) :].split(".", 1)[0] for name in shapes if name.startswith(prefix))
    return max((int(number) + 1 for number in numbers if number.isdigit()), default=0)


def read_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """A component folder's JSON configuration."""
    path = folder / name
    if not path.is_file():
        raise MissingFile(f"{path} is missing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise Unsupported(f"{path} is not valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise Unsupported(f"{path} is not a JSON object")
    return config


def _read_header(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingFile(f"{path} is not on disk")
    if path.suffix not in (".safetensors", ".sft"):
        raise Unsupported(f"{path.name}: only .safetensors files and diffusers folders are supported")
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _HEADER_LIMIT_BYTES + 1
        if length > min(_HEADER_LIMIT_BYTES, path.stat().st_size):
            raise Unsupported(f"{path.name} is damaged or not a safetensors file")
        text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, UnicodeDecodeError) as error:
        raise Unsupported(f"{path.name} is damaged: its header is not JSON") from error
    if not isinstance(header, dict):
        raise Unsupported(f"{path.name} is damaged: its header is not a JSON object")
    return header
