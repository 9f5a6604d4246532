"""Forwards of a model over its own pools of keys, values and states: a batch in, logits and hidden states
out.

`Runner` is also what a custom runner derives from.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.llm.attention import PagedForward
from runtime.llm.batch import Batch
from runtime.llm.key_values import KeyValues
from runtime.llm.model import LanguageModel
from runtime.llm.sequence import Row
from runtime.llm.state_slots import StateSlots
from runtime.llm.states import States


@dataclass(frozen=True, slots=True)
class Output:
    """`logits` [N, V] belong to the batch's `logits_at`; `hidden` holds all layers' [T, width] when asked
    for.
    """

    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]


class Runner:
    """Computes every forward of one loaded model, on the engine's thread.

    A derived class may override `__init__`, which gets these arguments and passes them on, and `forward`;
    `self.model.network` is transformers' model. `slots` are there for models whose layers carry states.
    """

    def __init__(
        self, model: LanguageModel, num_pages: int, page_size: int, slots: StateSlots | None = None
    ) -> None:
        self.model = model
        self.key_values = KeyValues(num_pages, page_size, model.device)
        for index, shape in model.shapes.items():
            self.key_values.layer(index, shape)
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.network.forward).parameters
        self._slots = slots
        self._states = None if slots is None else States(slots.num_slots, model.device, model.states)

    def parts(self, rows: Sequence[Row]) -> list[Sequence[Row]]:
        """A step's rows as forwards can take them.

        States go from token to token, so that rows of several tokens cannot be packed behind one another:
        each is a forward of its own, and all rows of one further token together are another one.
        """
        if self._states is None:
            return [rows]
        goes_on = [row.count == 1 and row.start > 0 for row in rows]
        together = [row for row, one in zip(rows, goes_on, strict=True) if one]
        alone: list[Sequence[Row]] = [[row] for row, one in zip(rows, goes_on, strict=True) if not one]
        return [together, *alone] if together else alone

    @torch.inference_mode()
    def forward(self, batch: Batch, *, media: Mapping[str, Any], with_hidden: bool) -> Output:
        """`batch` holds one of the `parts` of a step, and `media` are the further arguments of a batch with
        places of images, videos or sounds.

        `Output.logits` must have a row for each of `batch.logits_at`, in float32 or the model's own type.
        """
        paged = PagedForward(batch, self.key_values, self.model.windows)
        if self._states is not None:
            return self._forward_states(self._states, batch, paged, media, with_hidden)
        out = self.model.network(
            input_ids=None if "inputs_embeds" in media else batch.input_ids,
            position_ids=batch.position_ids,
            use_cache=False,
            logits_to_keep=batch.logits_at,
            output_hidden_states=with_hidden,
            paged=paged,
            **media,
        )
        hidden = tuple(layer[0] for layer in out.hidden_states) if with_hidden else ()
        return Output(self._wanted(out, batch), hidden)

    def _wanted(self, out: Any, batch: Batch) -> torch.Tensor:
        """Some models know only how to compute the logits of all tokens."""
        logits: torch.Tensor = out.logits[0] if self._keeps_logits else out.logits[0, batch.logits_at]
        return logits

    def _forward_states(
        self, states: States, batch: Batch, paged: PagedForward, media: Mapping[str, Any], with_hidden: bool
    ) -> Output:
        assert self._slots is not None
        states.move(self._slots.take_moves())
        states.begin(batch.rows)
        rows = len(batch.rows)
        out = self.model.network(
            input_ids=batch.input_ids.view(rows, -1),
            position_ids=batch.position_ids.view(*batch.position_ids.shape[:-2], rows, -1),
            use_cache=True,
            cache=states,
            logits_to_keep=batch.logits_at if rows == 1 else 0,
            output_hidden_states=with_hidden,
            paged=paged,
            **media,
        )
        states.commit()
        logits = self._wanted(out, batch) if rows == 1 else out.logits[:, -1][batch.logits_at]
        hidden = tuple(layer.flatten(0, 1) for layer in out.hidden_states) if with_hidden else ()
        return Output(logits, hidden)
