"""One packed forward of a model over its own pool of keys and values: a batch in, logits and hidden states
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.llm.attention import PagedForward
from runtime.llm.batch import Batch
from runtime.llm.key_values import KeyValues
from runtime.llm.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Output:
    """`logits` [N, V] belong to the batch's `logits_at`; `hidden` holds all layers' [T, width] when asked
    for.
    """

    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]


class Runner:
    def __init__(self, model: LanguageModel, num_pages: int, page_size: int) -> None:
        self.model = model
        self.key_values = KeyValues(num_pages, page_size, model.device)
        for index, shape in model.shapes.items():
            self.key_values.layer(index, shape)

    @torch.inference_mode()
    def forward(self, batch: Batch, *, media: Mapping[str, Any], with_hidden: bool) -> Output:
        """`media` are the further arguments of a batch that holds places of images, videos or sounds."""
        out = self.model.network(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            use_cache=False,
            logits_to_keep=batch.logits_at,
            output_hidden_states=with_hidden,
            paged=PagedForward(batch, self.key_values, self.model.windows),
            **media,
        )
        hidden = tuple(layer[0] for layer in out.hidden_states) if with_hidden else ()
        return Output(out.logits[0], hidden)
