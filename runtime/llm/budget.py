"""How much memory the pages and the states of a model may take, and so how many of them there are."""

from __future__ import annotations

from dataclasses import dataclass

import psutil
import torch

from runtime.llm.model import LanguageModel
from runtime.platform.errors import OutOfMemory

_BYTES_AT_MOST = 2 << 30


@dataclass(frozen=True, slots=True)
class Budget:
    """For one model of at most `max_rows` sequences.

    `fraction` is the share of all memory that weights, pages and states of all models may take together,
    `others_bytes` what the other models take of it. Without a fraction it is a quarter of what is free, or
    half of an accelerator's.
    """

    model: LanguageModel
    max_rows: int
    fraction: float | None
    others_bytes: int

    @property
    def num_bytes(self) -> int:
        device = self.model.device
        if self.fraction is not None:
            static = self.model.weight_bytes + self.others_bytes
            return max(0, int(self.fraction * _total_bytes(device)) - static)
        if device.type == "cuda":
            return torch.cuda.mem_get_info(device)[0] // 2
        return min(psutil.virtual_memory().available // 4, _BYTES_AT_MOST)

    def states(self) -> tuple[int, int]:
        """How many sequences may run, and how many states are kept of prefixes beside theirs."""
        if not self.model.states:
            return self.max_rows, 0
        count = min(2 * self.max_rows, self.num_bytes // 2 // self.model.state_bytes)
        if count < 1:
            raise OutOfMemory(
                f"no memory is left for one sequence's states of {self.model.state_bytes} bytes"
            )
        return count - count // 2, count // 2

    def pages(self, page_size: int) -> int:
        """Never more than all rows could fill; models with states share the budget with these."""
        budget = self.num_bytes // (2 if self.model.states else 1)
        pages = budget // (self.model.token_bytes * page_size)
        useful = self.max_rows * self.model.context_length // page_size
        if pages < 1:
            raise OutOfMemory(f"no memory is left for one page of {page_size} tokens")
        return min(pages, useful)


def _total_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return psutil.virtual_memory().total
