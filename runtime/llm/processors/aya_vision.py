"""Aya Vision: InternVL's tiles, each with its number in front."""

from __future__ import annotations

from runtime.llm.processors.internvl import InternVL


class AyaVision(InternVL):
    model_types = ("aya_vision",)
