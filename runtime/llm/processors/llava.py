"""LLaVA 1.5: one square picture, one grid of features."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class Llava(Processor):
    model_types = ("llava",)
