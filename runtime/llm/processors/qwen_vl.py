"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: pictures and videos of any size, and positions of three axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

from runtime.llm.api import Media, Video
from runtime.llm.media import Features, Item, Kind, Placed
from runtime.llm.processors import assemble, video
from runtime.llm.processors.base import Processor
from runtime.platform.errors import Unsupported

_TYPE_IDS: dict[Kind, int] = {"image": 1, "video": 2}
_SECONDS = "second_per_grid_ts"


class QwenVL(Processor):
    model_types: ClassVar[tuple[str, ...]] = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
    kinds: ClassVar[tuple[Kind, ...]] = ("image", "video")
    position_axes: ClassVar[int] = 3

    @classmethod
    def load(cls, folder: Path, config: Any) -> Processor:
        made = assemble.load(folder, config.model_type)
        bounds_whole = not config.model_type.startswith("qwen2")
        made.video_processor = video.load(folder, made.image_processor, bounds_whole=bounds_whole)
        return cls(made, config)

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        if not isinstance(media, Video):
            return super().preprocess(media)
        processor = self._thread_processor()
        if processor.video_processor is None:
            raise Unsupported("this model does not say how it takes videos; it takes images")
        made, texts = processor._process_videos([self.raw(media)], times=[media.times])
        inputs = {name: made[name] for name in processor.video_processor.model_input_names}
        if _SECONDS in made:
            inputs[_SECONDS] = torch.tensor(made[_SECONDS])
        return inputs, texts[0]

    def stack(self, items: Sequence[Item]) -> dict[str, torch.Tensor]:
        return {name: each for name, each in super().stack(items).items() if name != _SECONDS}

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
        seconds = [each.item.inputs[_SECONDS] for each in placed if _SECONDS in each.item.inputs]
        if seconds:
            grids[_SECONDS] = torch.cat(seconds)
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
