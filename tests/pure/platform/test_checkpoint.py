from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from runtime.platform.checkpoint import count_layers, first_prefix, read_config, read_shapes, under
from runtime.platform.errors import MissingFile, Unsupported


def write(path: Path, header: Any, length: int | None = None, body: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body)
    return path


def test_shapes_are_read_without_the_tensors(tmp_path: Path) -> None:
    entry = {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}
    path = write(
        tmp_path / "a.safetensors", {"__metadata__": {"x": "y"}, "layer.weight": entry}, body=b"\0" * 12
    )
    assert read_shapes(path) == {"layer.weight": (2, 3)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b"\xff" * 8, "damaged"),
        (struct.pack("<Q", 4) + b"{{{{", "not JSON"),
        (struct.pack("<Q", 2) + b"[]", "not a JSON object"),
        (struct.pack("<Q", 7) + b'{"a":1}', "names no shapes"),
        (struct.pack("<Q", 200) + b"{}", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(Unsupported, match=r"broken\.safetensors") as refusal:
        read_shapes(path)
    assert words in str(refusal.value)


def test_a_missing_file_and_another_format_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_shapes(tmp_path / "gone.safetensors")
    (tmp_path / "model.ckpt").write_bytes(b"pickle")
    with pytest.raises(Unsupported, match=r"only \.safetensors"):
        read_shapes(tmp_path / "model.ckpt")


def test_a_configuration_must_be_a_json_object(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_config(tmp_path)
    for text in ("{", "[1]"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(Unsupported, match="JSON"):
            read_config(tmp_path)
    (tmp_path / "config.json").write_text('{"a": 1}')
    assert read_config(tmp_path) == {"a": 1}


def test_prefixes_and_layers_are_counted() -> None:
    shapes = {"m.blocks.0.w": (1,), "m.blocks.11.w": (2,), "m.blocks.x.w": (3,), "n.w": (4,)}
    assert under(shapes, "n.") == {"w": (4,)}
    assert first_prefix(shapes, ("z.", "n.", "m.")) == "n."
    assert first_prefix(shapes, ("z.",)) is None
    assert count_layers(shapes, "m.blocks.") == 12
    assert count_layers(shapes, "z.") == 0
