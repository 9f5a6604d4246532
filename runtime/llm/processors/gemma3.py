"""Gemma 3: the tokens of an image see each other both ways."""

from __future__ import annotations

from typing import Any

from transformers.modeling_outputs import BaseModelOutputWithPooling

from runtime.llm.media import Features
from runtime.llm.processors.base import Processor


class Gemma3(Processor):
    model_types = ("gemma3",)
    attends_both_ways = True

    def output(self, features: Features) -> Any:
        return BaseModelOutputWithPooling(pooler_output=features.rows)
