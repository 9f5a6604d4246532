"""Idefics3 and SmolVLM: a picture in square tiles, named by row and column, and a small view of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.llm.media import Item
from runtime.llm.processors import assemble
from runtime.llm.processors.base import Processor


class Idefics3(Processor):
    model_types = ("idefics3", "smolvlm")

    def template(self, items: Sequence[Item]) -> Any:
        return assemble.plain(super().template(items))
