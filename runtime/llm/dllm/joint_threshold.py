"""Fill in what the model is sure of, and change what it is sure should be something else, even after the last
mask has gone. As in LLaDA 2.1 (arXiv 2602.08676).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.llm.dllm.blocks import Block, Candidate, algorithms, fill


@algorithms.register("joint_threshold")
@dataclass(frozen=True, slots=True)
class JointThreshold:
    """A mask becomes a token above `threshold`, or where it is the surest; a token becomes another above
    `edit_threshold`. A block without masks is looked at until nothing changes, `max_checks` times at most.
    """

    threshold: float = 0.7
    edit_threshold: float = 0.5
    max_checks: int = 16

    def step(self, block: Block, candidates: Sequence[Candidate], mask_id: int) -> bool:
        masks = [index for index, token in enumerate(block.tokens) if token == mask_id]
        edits = [index for index, each in enumerate(candidates) if self._is_edit(block.tokens[index], each)]
        edits = [index for index in edits if index not in masks]
        if masks:
            fill(block, candidates, masks, self.threshold)
        else:
            block.num_checks += 1
        for index in edits:
            block.tokens[index] = candidates[index].token
        if mask_id in block.tokens:
            return False
        is_settled = not masks and not edits
        return is_settled or block.num_checks >= self.max_checks

    def _is_edit(self, token: int, candidate: Candidate) -> bool:
        return candidate.token != token and candidate.confidence > self.edit_threshold
