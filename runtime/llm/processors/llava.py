"""LLaVA 1.5 and Pixtral in its form, LLaVA-Next with its tiles, and ViP-LLaVA."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class Llava(Processor):
    model_types = ("llava", "llava_next")


class VipLlava(Processor):
    model_types = ("vipllava",)
    takes_joined_rows = True
