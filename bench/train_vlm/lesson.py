"""One lesson: its optimisers, its learning rate over time, its log, and the file to go on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

DECAY = 0.4  # the last part of a lesson, in which the rate falls to zero
LOG_EVERY, SAVE_EVERY = 25, 50  # steps


class Lesson:
    """Owns the optimisers of the parameters of `learner`; iterating over it counts what is left."""

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
        self._optimisers = _optimisers(learner, rate, weight_decay)
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
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = self._rate * min(1, (self._done + 1) / self._warm_up, left / DECAY)
            optimiser.step()
            optimiser.zero_grad()
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
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
            "generator": self.generator.get_state(),
        }
        fresh = self._checkpoint.with_suffix(".part")
        torch.save(state, fresh)
        fresh.replace(self._checkpoint)

    def _restore(self, state: dict[str, Any]) -> None:
        self._done = state["done"]
        self._learner.load_state_dict(state["learner"])
        for optimiser, saved in zip(self._optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        self.generator.set_state(state["generator"])


def _optimisers(learner: nn.Module, rate: float, weight_decay: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the blocks and the projector, AdamW for all the rest."""
    inner, rest = [], []
    for name, value in learner.named_parameters():
        is_inner = value.ndim == 2 and ("encoder.layers" in name or "projector" in name)
        (inner if is_inner else rest).append(value)
    return [
        torch.optim.Muon(
            inner, lr=rate, weight_decay=weight_decay, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=weight_decay, fused=True),
    ]
