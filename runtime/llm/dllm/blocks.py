"""How block-diffusion models write: a block of masks becomes tokens in several steps, in any order, and then
the next block begins. It knows no tensors and no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from runtime.platform.registry import Registry


@dataclass(frozen=True, slots=True)
class BlockStyle:
    """Blocks of `length` tokens; `mask_id` stands where nothing is chosen yet."""

    length: int
    mask_id: int

    def masks_behind(self, num_tokens: int) -> list[int]:
        """The rest of the block that a sequence of so many tokens is in: all of one where none is begun."""
        return [self.mask_id] * (self.length - num_tokens % self.length)


@dataclass(slots=True)
class Block:
    """The block that is being written, without what a prompt has of it. `num_checks` counts the steps since
    it has no masks.
    """

    tokens: list[int]
    num_checks: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the model would have at a position, and how likely it finds that."""

    token: int
    confidence: float


class Algorithm(Protocol):
    """What to take of the model's candidates, none of which is a mask."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def step(self, block: Block, candidates: Sequence[Candidate], mask_id: int) -> bool:
        """Change the block's tokens in place; whether they stay as they are now. Must come to that."""


algorithms: Registry[type[Algorithm]] = Registry("block-diffusion algorithm")


def fill(block: Block, candidates: Sequence[Candidate], places: Sequence[int], threshold: float) -> None:
    """Those of the masked `places` that the model is surer of than `threshold`, else the surest one."""
    sure = [index for index in places if candidates[index].confidence > threshold]
    for index in sure or [max(places, key=lambda each: candidates[each].confidence)]:
        block.tokens[index] = candidates[index].token
