"""Rows of many requests as one stack of tensors for the network."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from runtime.diffusion.families.base import Cond, Network


@dataclass(frozen=True, slots=True, eq=False)
class DenoiseRow:
    """One image at one level: x [C, h, w] as the network sees it. `alone` keeps it from other requests."""

    network: Network
    x: torch.Tensor
    timestep: float
    cond: Cond
    alone: str | None

    @property
    def key(self) -> Hashable:
        """What rows share that share a forward. Steps, seeds, prompts and guidance are not in it."""
        x, cond_key = self.x, self.network.cond_key(self.cond)
        return "denoise", id(self.network), tuple(x.shape), x.dtype, cond_key, self.alone


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """x [R, C, h, w], timestep [R], one conditioning a row."""

    network: Network
    x: torch.Tensor
    timestep: torch.Tensor
    conds: tuple[Cond, ...]


def build(rows: Sequence[DenoiseRow]) -> Batch:
    network, x = rows[0].network, torch.stack([row.x for row in rows])
    # float32 holds every table's levels; float64 is for latents that have it
    precise = torch.float64 if x.dtype == torch.float64 else torch.float32
    timestep = torch.tensor([row.timestep for row in rows], dtype=precise, device=x.device)
    return Batch(network, x, timestep, tuple(row.cond for row in rows))
