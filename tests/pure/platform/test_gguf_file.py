from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from runtime.platform.errors import MissingFile, Unsupported
from runtime.platform.gguf_file import PackedTensor, read_gguf


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def sample() -> bytes:
    """Two tensors and four values: a number, a text, an array of texts, an array of numbers."""
    values = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("llama.block_count") + struct.pack("<II", 4, 30),
        text("words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é"),
        text("kinds") + struct.pack("<IIQ3i", 9, 5, 3, 1, -2, 3),
    ]
    tensors = [
        text("a.weight") + struct.pack("<I2QIQ", 2, 4, 3, 0, 0),
        text("b.weight") + struct.pack("<IQIQ", 1, 8, 0, 64),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(values + tensors)


def test_values_and_tensors_are_read_from_the_header(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(sample())
    file = read_gguf(path)
    assert file.values == {
        "general.architecture": "llama",
        "llama.block_count": 30,
        "words": ["a", "é"],
        "kinds": [1, -2, 3],
    }
    start = -(-len(sample()) // 32) * 32
    assert file.tensors["a.weight"] == PackedTensor(0, (3, 4), start)
    assert file.tensors["b.weight"] == PackedTensor(0, (8,), start + 64)


def test_a_header_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    for length in range(len(sample())):
        path.write_bytes(sample()[:length])
        with pytest.raises(Unsupported, match=r"cut\.gguf"):
            read_gguf(path)


def test_a_header_with_wrong_bytes_is_read_or_refused_and_never_worse(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    generator = random.Random(0)
    refused = 0
    for _ in range(300):
        content = bytearray(sample())
        for _ in range(3):
            content[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(content)
        try:
            read_gguf(path)
        except Unsupported:
            refused += 1
    assert refused > 100


def test_a_missing_file_and_another_version_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="gone"):
        read_gguf(tmp_path / "gone.gguf")
    path = tmp_path / "old.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 1) + sample()[8:])
    with pytest.raises(Unsupported, match="version 2 or 3"):
        read_gguf(path)
