"""What a language process and an encoder process say to one another: safetensors, with the rest as JSON in
their header.

Also how both tell that they mean the same model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from runtime.llm.media import Features, Item, content_hash
from runtime.platform.errors import MissingFile, Unsupported

PATH = "/encode"
_KINDS = ("image", "video", "audio")
_SAMPLES = 64
_SAMPLE_BYTES = 4096

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Question:
    """The features of these items are wanted, of a model whose files have this fingerprint."""

    fingerprint: str
    items: tuple[Item, ...]


def fingerprint(folder: Path) -> str:
    """Of a model's configuration and weights; of the latter, headers, sizes and samples are looked at."""
    config = folder / "config.json"
    if not config.is_file():
        raise MissingFile(f"{folder.name} has no config.json")
    digest = hashlib.sha256(config.read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}{size}".encode())
        with path.open("rb") as file:
            for step in range(_SAMPLES):
                file.seek(step * size // _SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def question(asked: Question) -> bytes:
    tensors: dict[str, torch.Tensor] = {}
    told = []
    for number, item in enumerate(asked.items):
        tensors |= {f"{number}.{name}": each.contiguous() for name, each in item.inputs.items()}
        told.append({"kind": item.kind, "num_rows": item.num_rows, "hash": item.hash.hex()})
    return save(tensors, {"told": json.dumps({"fingerprint": asked.fingerprint, "items": told})})


def read_question(body: bytes) -> Question:
    """Raises `Unsupported` for what is no question."""
    tensors, told = _read(body)
    try:
        items = [_item(number, about, tensors) for number, about in enumerate(told["items"])]
        return Question(str(told["fingerprint"]), tuple(items))
    except (KeyError, TypeError, ValueError) as error:
        raise Unsupported(f"the body asks for no features: {type(error).__name__} {error}") from error


def answer(features: Sequence[Features]) -> bytes:
    tensors: dict[str, torch.Tensor] = {}
    for number, each in enumerate(features):
        layers = {f"{number}.deep.{at}": layer for at, layer in enumerate(each.deep)}
        # Parts of one tensor cannot be saved as they are.
        tensors |= {name: one.cpu().clone() for name, one in {f"{number}.rows": each.rows, **layers}.items()}
    return save(tensors, {"told": json.dumps({"deep": [len(each.deep) for each in features]})})


def read_answer(body: bytes) -> list[Features]:
    """Raises `Unsupported` for what is no answer."""
    tensors, told = _read(body)
    try:
        return [
            Features(tensors[f"{number}.rows"], tuple(tensors[f"{number}.deep.{at}"] for at in range(count)))
            for number, count in enumerate(told["deep"])
        ]
    except (KeyError, TypeError) as error:
        raise Unsupported(f"the answer has no features: {type(error).__name__} {error}") from error


def _item(number: int, about: Mapping[str, Any], tensors: Tensors) -> Item:
    kind, prefix = about["kind"], f"{number}."
    inputs = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    if kind not in _KINDS or not inputs:
        raise ValueError(f"item {number} has no inputs of a known kind")
    digest = bytes.fromhex(about["hash"])
    if content_hash(kind, inputs) != digest:
        raise ValueError(f"item {number} is not what its hash says")
    return Item(kind, inputs, "", int(about["num_rows"]), digest)


def _read(body: bytes) -> tuple[Tensors, dict[str, Any]]:
    try:
        tensors = load(body)
        size = int.from_bytes(body[:8], "little")
        told = json.loads(json.loads(body[8 : 8 + size])["__metadata__"]["told"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise Unsupported(f"the body is no safetensors file of this protocol: {error}") from error
    if not isinstance(told, dict):
        raise Unsupported("the body says nothing about its tensors")
    return tensors, told
