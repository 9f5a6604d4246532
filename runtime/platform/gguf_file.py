"""What a GGUF file holds, read from its header in one pass; tensors are unpacked only when asked for.

It knows the file format, not models.
"""

from __future__ import annotations

import importlib
import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.platform.errors import MissingFile, Unsupported

if TYPE_CHECKING:
    import torch

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """`shape` is the tensor's own, rows first; `start` counts from the beginning of the file."""

    kind: int
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """`values` are the header's entries by name; arrays are lists."""

    path: Path
    values: Mapping[str, Any]
    tensors: Mapping[str, PackedTensor]

    def tensor(self, name: str) -> torch.Tensor:
        """Unpacked, float32."""
        import numpy
        import torch

        gguf = importlib.import_module("gguf")
        packed = self.tensors[name]
        kind = gguf.GGMLQuantizationType(packed.kind)
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        row_bytes = packed.shape[-1] // block * block_bytes
        rows = math.prod(packed.shape[:-1])
        stored = numpy.fromfile(self.path, numpy.uint8, rows * row_bytes, offset=packed.start)
        if stored.size < rows * row_bytes:
            raise Unsupported(f"{self.path.name} is damaged: {name} is cut short")
        unpacked = gguf.quants.dequantize(stored.reshape(*packed.shape[:-1], row_bytes), kind)
        return torch.from_numpy(unpacked.copy())


def read_gguf(path: Path) -> GgufFile:
    if not path.is_file():
        raise MissingFile(f"{path} is not on disk")
    if path.stat().st_size == 0:
        raise Unsupported(f"{path.name} is empty")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _read(path, _Cursor(content))
    except (struct.error, UnicodeDecodeError, KeyError, MemoryError, OverflowError, RecursionError) as error:
        raise Unsupported(f"{path.name} is damaged: its header ends or makes no sense") from error


def _read(path: Path, cursor: _Cursor) -> GgufFile:
    if cursor.raw(4) != _MAGIC or cursor.number("I") not in _VERSIONS:
        raise Unsupported(f"{path.name} is not a GGUF file of version 2 or 3")
    num_tensors, num_values = cursor.number("Q"), cursor.number("Q")
    values = {}
    for _ in range(num_values):
        name = cursor.text()
        values[name] = cursor.value(cursor.number("I"))
    found = []
    for _ in range(num_tensors):
        name = cursor.text()
        shape = tuple(cursor.number("Q") for _ in range(cursor.number("I")))[::-1]
        found.append((name, shape, cursor.number("I"), cursor.number("Q")))
    alignment = values.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise Unsupported(f"{path.name} is damaged: its tensors are aligned to {alignment}")
    data = -(-cursor.position // alignment) * alignment
    tensors = {name: PackedTensor(kind, shape, data + offset) for name, shape, kind, offset in found}
    return GgufFile(path, values, tensors)


class _Cursor:
    """A place in the file's bytes; each call reads there and moves on."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self.position = 0

    def raw(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        if self.position > len(self._content):
            raise struct.error("past the end")
        return self._content[start : self.position]

    def number(self, letter: str) -> Any:
        (value,) = struct.unpack_from(f"<{letter}", self._content, self.position)
        self.position += struct.calcsize(f"<{letter}")
        return value

    def text(self) -> str:
        return self.raw(self.number("Q")).decode()

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        inner, count = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            layout = f"<{count}{_NUMBERS[inner]}"
            return list(struct.unpack(layout, self.raw(struct.calcsize(layout))))
        return [self.value(inner) for _ in range(count)]
