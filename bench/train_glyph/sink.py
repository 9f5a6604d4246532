"""What a text of one token needs: its only state is the language model's attention sink.

Such states share one large offset, ten times the size of what tells the words apart. A transformer that sees
it learns little else from them; so training works without it, and the finished layers that read words ignore
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from diffusers import SD3Transformer2DModel
from torch import Tensor

from bench.train_glyph.text import Features


@dataclass(frozen=True, slots=True)
class Sink:
    """The offset's directions, both [D]."""

    token: Tensor
    pooled: Tensor

    @classmethod
    def of(cls, features: Features) -> Sink:
        chosen = is_one_token(features)
        token, pooled = features.tokens[chosen, 0].mean(0), features.pooled[chosen].mean(0)
        return cls(token / token.norm(), pooled / pooled.norm())

    def taken_from(self, features: Features) -> Features:
        return Features(_without(features.tokens, self.token), _without(features.pooled, self.pooled))

    @torch.no_grad()
    def taken_out_of(self, model: SD3Transformer2DModel) -> SD3Transformer2DModel:
        """The same model, which now draws from whole features what it would draw without the offset."""
        words, pooled = model.context_embedder.weight, model.time_text_embed.text_embedder.linear_1.weight
        words.copy_(_without(words, self.token))
        pooled.copy_(_without(pooled, self.pooled))
        return model


def is_one_token(features: Features) -> Tensor:
    """[B]; the first state of a longer text is left out, so it is zero."""
    return features.tokens[:, 0].abs().sum(1) > 0


def _without(values: Tensor, direction: Tensor) -> Tensor:
    # values: [..., D]
    return values - (values @ direction)[..., None] * direction
