"""Mistral 3 and LightOnOCR, both with Pixtral's tower: pictures of any size, four patches to a feature."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class Mistral3(Processor):
    model_types = ("mistral3", "lighton_ocr")
