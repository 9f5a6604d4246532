"""Gemma 3: the tokens of an image see each other both ways."""

from __future__ import annotations

from runtime.llm.processors.base import Processor


class Gemma3(Processor):
    model_types = ("gemma3",)
    attends_both_ways = True
    takes_joined_rows = True
