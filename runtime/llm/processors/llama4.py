"""Llama 4: a picture in tiles with marks between them, projected into the language model by its forward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers.modeling_outputs import BaseModelOutputWithPooling, MoeCausalLMOutputWithPast

from runtime.llm.media import Features, Item
from runtime.llm.processors.base import Processor


class Llama4(Processor):
    model_types = ("llama4",)

    @classmethod
    def load(cls, folder: Path, config: Any) -> Processor:
        # transformers 5.24 asks the answer of the language part for these, and it has none.
        MoeCausalLMOutputWithPast.image_outputs = None
        return super().load(folder, config)

    def split(self, output: Any, items: Sequence[Item]) -> list[Features]:
        output.pooler_output = output.last_hidden_state
        return super().split(output, items)

    def output(self, features: Features) -> Any:
        return BaseModelOutputWithPooling(last_hidden_state=features.rows[None])
