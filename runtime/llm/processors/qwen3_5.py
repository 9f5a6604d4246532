"""Qwen3.5: pictures as the earlier Qwen-VL take them, for a language part with recurrent layers."""

from __future__ import annotations

from runtime.llm.processors.qwen_vl import QwenVL


class Qwen35(QwenVL):
    model_types = ("qwen3_5", "qwen3_5_moe")
