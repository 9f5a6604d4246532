"""InternVL: a picture in square tiles, and a small view of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from runtime.llm.api import Media
from runtime.llm.media import Features, Item
from runtime.llm.processors import assemble
from runtime.llm.processors.base import Processor


class InternVL(Processor):
    model_types = ("internvl",)

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        inputs, text = super().preprocess(media)
        return {"pixel_values": inputs["pixel_values"]}, text

    def template(self, items: Sequence[Item]) -> Any:
        return assemble.plain(super().template(items))

    def output(self, features: Features) -> Any:
        return BaseModelOutputWithPooling(pooler_output=features.rows)
