"""The recurrent states of a model's layers: a pool of slots for each, and the face that transformers' layers
take for their cache.

What a forward changes reaches the pools when it has succeeded, so that one that failed can be tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from runtime.llm.sequence import Row

# The layer, what it keeps, and which of several when it keeps more than one.
StateKey = tuple[int, Literal["conv", "recurrent"], int]


@dataclass(frozen=True, slots=True)
class StateShape:
    """Of one sequence's state."""

    size: tuple[int, ...]
    dtype: torch.dtype

    @property
    def num_bytes(self) -> int:
        return torch.Size(self.size).numel() * self.dtype.itemsize


class States:
    """`shapes` are known after a first forward; with them the pools are there from the beginning."""

    def __init__(
        self, num_slots: int, device: torch.device, shapes: Mapping[StateKey, StateShape] | None = None
    ) -> None:
        self._num_slots = num_slots
        self._device = device
        self._pools = {key: self._pool(shape) for key, shape in (shapes or {}).items()}
        self._index = torch.empty(0, dtype=torch.long)
        self._is_fresh = True
        self._live: dict[StateKey, torch.Tensor] = {}

    @property
    def shapes(self) -> dict[StateKey, StateShape]:
        return {key: StateShape(tuple(pool.shape[1:]), pool.dtype) for key, pool in self._pools.items()}

    # -- around a forward ------------------------------------------------------------------------------------

    def move(self, moves: Sequence[tuple[int, int]]) -> None:
        """Copy from slot to slot, one after the other."""
        for source, target in moves:
            for pool in self._pools.values():
                pool[target].copy_(pool[source])

    def begin(self, rows: Sequence[Row]) -> None:
        """The next forward computes these rows, which all begin or all go on."""
        starts = {row.start == 0 for row in rows}
        assert len(starts) == 1, "rows that begin and rows that go on cannot share a forward"
        slots = [row.sequence.slot for row in rows]
        assert None not in slots, slots
        self._index = torch.tensor(slots, device=self._device)
        self._is_fresh = starts.pop()
        self._live = {}

    def commit(self) -> None:
        for key, value in self._live.items():
            if key not in self._pools:
                self._pools[key] = self._pool(StateShape(tuple(value.shape[1:]), value.dtype))
            pool = self._pools[key]
            pool.index_copy_(0, self._index, value.to(pool.dtype))
        self._live = {}

    # -- what transformers' layers call ----------------------------------------------------------------------

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        """[rows, channels, kernel]; a decoding layer changes it in place."""
        return self._get((layer_idx, "conv", state_idx))

    def update_conv_state(
        self,
        conv_states: torch.Tensor,
        layer_idx: int,
        state_idx: int = 0,
        conv_kernel_size: int | None = None,
        **_: Any,
    ) -> torch.Tensor:
        """The new columns behind those that a convolution still sees."""
        key: StateKey = (layer_idx, "conv", state_idx)
        before = self._get(key)
        width = conv_kernel_size or (conv_states if before is None else before).shape[-1]
        if before is None:
            missing = max(0, width - conv_states.shape[-1])
            full = torch.nn.functional.pad(conv_states, (missing, 0))
        else:
            full = torch.cat([before, conv_states], -1)
        self._live[key] = full[..., -width:]
        return full

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        return self._get((layer_idx, "recurrent", state_idx))

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        self._live[layer_idx, "recurrent", state_idx] = recurrent_states
        return recurrent_states

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:  # noqa: ARG002
        return not self._is_fresh

    def is_recording_past(self, layer_idx: int) -> bool:  # noqa: ARG002
        return False

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,  # noqa: ARG002
        *_: Any,
        **__: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values lie in pages; the attention function finds the earlier ones there."""
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002
        return 0

    def _get(self, key: StateKey) -> torch.Tensor | None:
        if key not in self._live and not self._is_fresh and key in self._pools:
            self._live[key] = self._pools[key][self._index]
        return self._live.get(key)

    def _pool(self, shape: StateShape) -> torch.Tensor:
        return torch.zeros((self._num_slots, *shape.size), dtype=shape.dtype, device=self._device)
