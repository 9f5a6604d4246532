"""What a prompt holds beside text: media made ready for a model's encoder, and where their features go.

It knows no model family and no scheduling.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

Kind = Literal["image", "video", "audio"]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What an encoder makes of one item: `rows` [n, width] take the place of its placeholders' embeddings.

    Each of `deep` [n, width] is added to the hidden states after one of the first layers.
    """

    rows: torch.Tensor
    deep: tuple[torch.Tensor, ...] = ()

    @property
    def num_bytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in (self.rows, *self.deep))

    def part(self, start: int, stop: int) -> Features:
        return Features(self.rows[start:stop], tuple(each[start:stop] for each in self.deep))


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One image, video or sound, preprocessed by itself, so that nothing of it depends on its neighbours.

    `inputs` are what the encoder takes, `text` is what stands for it in the prompt, `num_rows` counts
    the placeholders in that, and `hash` tells its content. `features` are there when they were computed
    elsewhere.
    """

    kind: Kind
    inputs: Mapping[str, torch.Tensor]
    text: str
    num_rows: int
    hash: bytes
    features: Features | None = None

    @property
    def num_bytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in self.inputs.values())


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An item and the positions in the prompt that its features take, in order."""

    item: Item
    positions: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        return self.positions[0], self.positions[-1] + 1

    def rows_in(self, start: int, stop: int) -> tuple[int, int]:
        """Which of its features fall between two positions."""
        return bisect_left(self.positions, start), bisect_left(self.positions, stop)


@dataclass(frozen=True, slots=True, eq=False)
class MediaPrompt:
    """`keys` are the tokens with each placeholder replaced by what its item's content says.

    `positions` [axes, n] are the prompt's own where a model counts them otherwise than one by one; tokens
    after the prompt stand `shift` further than their place.
    """

    tokens: list[int]
    keys: list[int]
    placed: tuple[Placed, ...]
    atoms: tuple[tuple[int, int], ...] = ()
    positions: torch.Tensor | None = None
    shift: int = 0

    def positions_of(self, start: int, count: int, axes: int) -> torch.Tensor:
        """[axes, count]"""
        counted = torch.arange(start, start + count).expand(axes, -1)
        if self.positions is None:
            return counted
        own = self.positions[:, start : start + count]
        return torch.cat([own, counted[:, own.shape[1] :] + self.shift], 1)


def content_hash(kind: str, inputs: Mapping[str, torch.Tensor]) -> bytes:
    """32 bytes that differ as soon as the kind or one number differs."""
    digest = hashlib.sha256(kind.encode())
    for name in sorted(inputs):
        tensor = inputs[name]
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


def keys_of(tokens: Sequence[int], placed: Sequence[Placed]) -> list[int]:
    """Content in place of placeholders, as negative numbers that no token has."""
    keys = list(tokens)
    for each in placed:
        key = -1 - int.from_bytes(each.item.hash)
        for position in each.positions:
            keys[position] = key
    return keys
