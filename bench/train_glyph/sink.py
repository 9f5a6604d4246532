"""What a text of one token needs: its only state is the language model's attention sink.

Such states share one large offset, several times the size of what tells the words apart. It is taken out of
the two layers that read words, or the transformer would draw the same picture for all of them.
"""

import torch
from diffusers import SD3Transformer2DModel
from torch import Tensor

from bench.train_glyph.text import Features


def is_one_token(features: Features) -> Tensor:
    """[B]; the first state of a longer text is left out, so it is zero."""
    return features.tokens[:, 0].abs().sum(1) > 0


def ignore_sink(model: SD3Transformer2DModel, features: Features) -> None:
    """Harmless where it was done before."""
    chosen = is_one_token(features)
    _project_out(model.context_embedder.weight, features.tokens[chosen, 0].mean(0))
    _project_out(model.time_text_embed.text_embedder.linear_1.weight, features.pooled[chosen].mean(0))


@torch.no_grad()
def _project_out(weight: Tensor, offset: Tensor) -> None:
    # weight: [out, D]; offset: [D]
    direction = offset / offset.norm()
    weight.sub_((weight @ direction)[:, None] * direction)
