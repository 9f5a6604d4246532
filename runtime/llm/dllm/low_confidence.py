"""Fill in what the model is sure of, step by step, until no mask is left; what is filled in stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.llm.dllm.blocks import Block, Candidate, algorithms, fill


@algorithms.register("low_confidence")
@dataclass(frozen=True, slots=True)
class LowConfidence:
    threshold: float = 0.95

    def step(self, block: Block, candidates: Sequence[Candidate], mask_id: int) -> bool:
        masks = [index for index, token in enumerate(block.tokens) if token == mask_id]
        fill(block, candidates, masks, self.threshold)
        return mask_id not in block.tokens
