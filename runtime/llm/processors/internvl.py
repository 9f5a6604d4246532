"""InternVL, and Qianfan-OCR of its making: a picture in square tiles, and a small view of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from runtime.llm.api import Media
from runtime.llm.media import Item
from runtime.llm.processors import assemble
from runtime.llm.processors.base import Processor


class InternVL(Processor):
    model_types: ClassVar[tuple[str, ...]] = ("internvl", "qianfan_ocr")
    takes_joined_rows = True

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        inputs, text = super().preprocess(media)
        return {"pixel_values": inputs["pixel_values"]}, text

    def template(self, items: Sequence[Item]) -> Any:
        return assemble.plain(super().template(items))
