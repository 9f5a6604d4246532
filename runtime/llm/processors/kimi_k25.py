"""Kimi K2.5: pictures of any size in patches, four to a feature, for a language part of DeepSeek's kind."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class KimiK25(Processor):
    model_types = ("kimi_k25",)
