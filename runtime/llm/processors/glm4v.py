"""GLM-4.1V and GLM-4.6V, which prepare and place pictures as Qwen2.5-VL does."""

from __future__ import annotations

from runtime.llm.processors.qwen_vl import QwenVL


class Glm4v(QwenVL):
    model_types = ("glm4v", "glm46v")
    kinds = ("image",)
