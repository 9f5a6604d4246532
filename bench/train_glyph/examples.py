"""What the transformer learns from: latents of the glyphs, and the captions that may stand for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.train_glyph.captions import Caption
from bench.train_glyph.sink import is_one_token
from bench.train_glyph.text import Features

EMPTY = 0.1  # the share of examples without words, for guidance
HARD = 2.5  # how much more often a glyph is drawn whose name is one token


@dataclass(frozen=True, slots=True)
class Batch:
    latents: Tensor  # [B, C, h, w]
    features: Features


class Examples:
    """`latents` is [2, N, C, h, w], glyphs and mirror images; `features` follow the captions' order."""

    def __init__(self, latents: Tensor, captions: Sequence[Sequence[Caption]], features: Features) -> None:
        assert latents.shape[1] == len(captions), (latents.shape, len(captions))
        self._latents = latents
        self._features = features
        most = max(map(len, captions))
        self._weights = torch.zeros(len(captions), most)
        self._rows = torch.zeros(len(captions), most, dtype=torch.long)
        first = 0
        for number, of_glyph in enumerate(captions):
            count = len(of_glyph)
            self._weights[number, :count] = torch.tensor([caption.weight for caption in of_glyph])
            self._rows[number, :count] = torch.arange(first, first + count)
            first += count
        one_token = is_one_token(features)
        self._weights *= torch.where(one_token[self._rows], 2.0, 1.0)
        self._shares = torch.where(one_token[self._rows[:, 0]], HARD, 1.0)

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        """Any glyphs, either way round, each with one of its captions or with none."""
        glyphs = torch.multinomial(self._shares, size, replacement=True, generator=generator)
        mirrored = torch.randint(2, (size,), generator=generator)
        choice = torch.multinomial(self._weights[glyphs], 1, generator=generator)[:, 0]
        rows = self._rows[glyphs, choice]
        worded = torch.rand(size, generator=generator) >= EMPTY
        tokens = self._features.tokens[rows].float() * worded[:, None, None]
        pooled = self._features.pooled[rows].float() * worded[:, None]
        return Batch(self._latents[mirrored, glyphs], Features(tokens, pooled))
