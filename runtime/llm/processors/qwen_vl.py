"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: pictures of any size, and positions of three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

from runtime.llm.media import Features, Kind, Placed
from runtime.llm.processors.base import Processor

_TYPE_IDS: dict[Kind, int] = {"image": 1, "video": 2}


class QwenVL(Processor):
    model_types: ClassVar[tuple[str, ...]] = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
    position_axes: ClassVar[int] = 3

    def positions(
        self, tokens: Sequence[int], placed: Sequence[Placed], network: Any
    ) -> tuple[torch.Tensor | None, int]:
        if not placed:
            return None, 0
        kinds = torch.zeros(1, len(tokens), dtype=torch.int)
        for each in placed:
            kinds[0, list(each.positions)] = _TYPE_IDS[each.item.kind]
        grids = {
            f"{kind}_grid_thw": torch.cat(found)
            for kind in self.kinds
            if (found := [each.item.inputs[_grid(kind)] for each in placed if each.item.kind == kind])
        }
        positions, shift = network.model.get_rope_index(
            input_ids=torch.tensor([list(tokens)]), mm_token_type_ids=kinds, **grids
        )
        return positions[:, 0], int(shift)

    def output(self, features: Features) -> Any:
        return BaseModelOutputWithDeepstackFeatures(
            pooler_output=(features.rows,), deepstack_features=[(each,) for each in features.deep]
        )


def _grid(kind: Kind) -> str:
    return f"{kind}_grid_thw"
