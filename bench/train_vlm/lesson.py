"""One lesson: its optimiser, its learning rate over time, its log, and the file to go on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

DECAY = 0.4  # the last part of a lesson, in which the rate falls to zero
LOG_EVERY, SAVE_EVERY = 50, 100  # steps


class Lesson:
    """Owns an optimiser over the parameters of `learner`; iterating over it counts what is left."""

    def __init__(
        self,
        learner: nn.Module,
        checkpoint: Path,
        *,
        steps: int,
        rate: float,
        warm_up: int,
        weight_decay: float,
    ) -> None:
        self._learner, self._checkpoint = learner, checkpoint
        self._steps, self._rate, self._warm_up = steps, rate, warm_up
        self._optimiser = torch.optim.AdamW(
            learner.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=weight_decay, fused=True
        )
        self.generator = torch.Generator().manual_seed(0)
        self._done = 0
        self._sums: dict[str, float] = {}
        if checkpoint.is_file():
            self._restore(torch.load(checkpoint))

    def __iter__(self) -> Iterator[int]:
        """The number of the step that is due; whoever iterates calls `step` once for each."""
        while self._done < self._steps:
            yield self._done

    def step(self, loss: Tensor, figures: Mapping[str, float]) -> None:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._learner.parameters(), 1.0)
        left = 1 - self._done / self._steps
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * min(1, (self._done + 1) / self._warm_up, left / DECAY)
        self._optimiser.step()
        self._optimiser.zero_grad()
        self._done += 1
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._record()

    def _record(self) -> None:
        if self._done % LOG_EVERY == 0:
            means = ", ".join(f"{name} {value / LOG_EVERY:.3f}" for name, value in self._sums.items())
            print(f"{self._checkpoint.stem}: step {self._done} of {self._steps}, {means}", flush=True)
            self._sums.clear()
        if self._done % SAVE_EVERY == 0 or self._done == self._steps:
            self._save()

    def _save(self) -> None:
        state = {
            "done": self._done,
            "learner": self._learner.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self.generator.get_state(),
        }
        fresh = self._checkpoint.with_suffix(".part")
        torch.save(state, fresh)
        fresh.replace(self._checkpoint)

    def _restore(self, state: dict[str, Any]) -> None:
        self._done = state["done"]
        self._learner.load_state_dict(state["learner"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])
