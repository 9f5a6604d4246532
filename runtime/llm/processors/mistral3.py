"""Mistral 3 with Pixtral's tower: pictures of any size, a mark after each row of patches."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class Mistral3(Processor):
    model_types = ("mistral3",)
