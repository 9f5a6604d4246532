"""MiniCPM-V 4.6 and 4.7: a small view of a picture and slices of it, each with its number in front."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from runtime.llm.media import Item, Placed
from runtime.llm.processors.base import Processor


class MiniCPMV46(Processor):
    model_types = ("minicpmv4_6",)

    def template(self, items: Sequence[Item]) -> Any:
        processor = super().template(items)
        processor._prepend_local_ids = partial(_numbered, processor)
        return processor

    def stack(self, items: Sequence[Item]) -> dict[str, torch.Tensor]:
        # Patches lie side by side: [1, 3, patch, width]
        return {
            "pixel_values": torch.cat([item.inputs["pixel_values"] for item in items], -1),
            "target_sizes": torch.cat([item.inputs["target_sizes"] for item in items]),
        }


class MiniCPMV47(MiniCPMV46):
    model_types = ("minicpmv4_7",)
    position_axes = 3

    def positions(
        self, tokens: Sequence[int], placed: Sequence[Placed], network: Any
    ) -> tuple[torch.Tensor | None, int]:
        if not placed:
            return None, 0
        kinds = torch.zeros(1, len(tokens), dtype=torch.int)
        for each in placed:
            kinds[0, list(each.positions)] = 1
        positions, shift = network.model.get_rope_index(
            input_ids=torch.tensor([list(tokens)]),
            mm_token_type_ids=kinds,
            target_sizes=torch.cat([each.item.inputs["target_sizes"] for each in placed]),
        )
        return positions[:, 0], int(shift)


def _numbered(processor: Any, _: Any, texts: Sequence[str], __: Any) -> list[str]:
    """The pictures' numbers in front of what stands for them; a place that a user spells has none."""
    start, end = processor.image_id_start_token, processor.image_id_end_token
    return [f"{start}{number}{end}{text}" for number, text in enumerate(texts)]
