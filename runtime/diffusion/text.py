"""Prompts to conditionings, many at once: CLIP in weighted chunks, T5, a chat model's hidden layer.

A prompt's result does not depend on the prompts that share its forward. Which encoders belong together is the
families' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from runtime.diffusion.prompt_weights import WeightedIds, clip_chunks, without_weights

_CHUNK = 77


@dataclass(frozen=True, slots=True)
class ClipUse:
    """How a family reads a CLIP text encoder.

    `layer` is -1 for the last, -2 for the last but one ...; `normed` applies the final norm to it.
    `pads_with_end` fills a chunk with the end token, else with token 0. `dropped_layers` were left out when
    the module was loaded.
    """

    layer: int
    normed: bool
    pads_with_end: bool
    dropped_layers: int = 0


class ClipEncoder:
    """One CLIP text encoder with its tokenizer."""

    def __init__(self, module: Any, tokenizer: Any, use: ClipUse, stop_layer: int | None) -> None:
        self.modules = (module,)
        self._module = module
        self._text_model = getattr(module, "text_model", module)
        self._tokenizer = tokenizer
        self._pad = tokenizer.eos_token_id if use.pads_with_end else 0
        self._normed = use.normed
        layer = use.layer if stop_layer is None else min(-1, stop_layer + use.dropped_layers)
        # a stop layer beyond the first means the first
        self._layer = max(layer, -len(self._text_model.encoder.layers))

    def chunks(self, text: str) -> list[WeightedIds]:
        return clip_chunks(text, lambda word: self._tokenizer(word, add_special_tokens=False)["input_ids"])

    def encode(self, prompts: Sequence[list[WeightedIds]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each prompt's tokens [1, 77 * chunks, D] and its first chunk's pooled state [1, P]."""
        rows = [chunk for prompt in prompts for chunk in prompt]
        hidden, pooled = self._forward([*rows, []])
        empty = hidden[-1]
        results, row = [], 0
        for prompt in prompts:
            span = slice(row, row + len(prompt))
            weights = torch.stack([self._weights(chunk) for chunk in prompt])[..., None]
            # interpolation from the empty prompt, left out where it would only round
            tokens = torch.where(weights == 1, hidden[span], empty + (hidden[span] - empty) * weights)
            results.append((tokens.flatten(0, 1)[None], pooled[row : row + 1]))
            row += len(prompt)
        return results

    @torch.inference_mode()
    def _forward(self, rows: Sequence[WeightedIds]) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.tensor([self._padded(row) for row in rows], device=self._module.device)
        answer = self._module(input_ids=ids, output_hidden_states=True)
        if self._normed and self._layer == -1:
            hidden = answer.last_hidden_state
        else:
            hidden = answer.hidden_states[self._layer]
            hidden = self._text_model.final_layer_norm(hidden) if self._normed else hidden
        pooled = answer.text_embeds if hasattr(answer, "text_embeds") else answer.pooler_output
        return hidden.float().cpu(), pooled.float().cpu()

    def _padded(self, row: WeightedIds) -> list[int]:
        ids = [self._tokenizer.bos_token_id, *(token for token, _ in row), self._tokenizer.eos_token_id]
        return ids + [self._pad] * (_CHUNK - len(ids))

    def _weights(self, row: WeightedIds) -> torch.Tensor:
        weights = [1.0, *(weight for _, weight in row)]
        return torch.tensor(weights + [1.0] * (_CHUNK - len(weights)))


def encode_side_by_side(
    encoders: Sequence[ClipEncoder], texts: Sequence[Sequence[str]]
) -> list[list[tuple[torch.Tensor, torch.Tensor]]]:
    """`texts[e]` are encoder e's prompts. For each prompt, each encoder's answer, all of the same length."""
    prompts = [[encoder.chunks(text) for text in own] for encoder, own in zip(encoders, texts)]
    for of_prompt in zip(*prompts):
        longest = max(len(chunks) for chunks in of_prompt)
        for chunks in of_prompt:
            chunks.extend([] for _ in range(longest - len(chunks)))
    answers = [encoder.encode(own) for encoder, own in zip(encoders, prompts)]
    return [list(of_prompt) for of_prompt in zip(*answers)]


class T5Encoder:
    """T5's last hidden state without a mask, as the families were trained. Prompt weights are not applied."""

    def __init__(self, module: Any, tokenizer: Any, min_tokens: int) -> None:
        self.modules = (module,)
        self._module = module
        self._tokenizer = tokenizer
        self._min_tokens = min_tokens
        self.width: int = module.config.d_model

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Each [1, L, D]; a prompt longer than the minimum keeps its own length."""
        ids = [self._ids(text) for text in texts]
        results: dict[int, torch.Tensor] = {}
        for length in sorted({len(row) for row in ids}):
            places = [place for place, row in enumerate(ids) if len(row) == length]
            batch = torch.tensor([ids[place] for place in places], device=self._module.device)
            hidden = self._module(input_ids=batch).last_hidden_state.float().cpu()
            results.update(zip(places, hidden.split(1)))
        return [results[place] for place in range(len(ids))]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(without_weights(text))["input_ids"]
        return ids + [self._tokenizer.pad_token_id or 0] * (self._min_tokens - len(ids))


class ChatEncoder:
    """The last layer of a cut chat model, over the prompt as a user's turn; results keep their own length."""

    def __init__(self, module: Any, tokenizer: Any, template: str, max_tokens: int) -> None:
        self.modules = (module,)
        self._module = module
        self._tokenizer = tokenizer
        self._template = template
        self._max_tokens = max_tokens

    def encode(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Each [1, L, D]."""
        prompts = [self._template.format(text) for text in texts]
        ids = [self._tokenizer(prompt)["input_ids"][: self._max_tokens] for prompt in prompts]
        return decoder_states(self._module, ids)


@torch.inference_mode()
def decoder_states(module: Any, ids: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """The last hidden states [1, L, D] of token rows of any lengths, in one forward padded on the right."""
    longest = max(len(row) for row in ids)
    batch = torch.stack([F.pad(torch.tensor(row), (0, longest - len(row))) for row in ids])
    mask = torch.stack([torch.arange(longest) < len(row) for row in ids]).long()
    answer = module(
        input_ids=batch.to(module.device), attention_mask=mask.to(module.device), use_cache=False
    ).last_hidden_state.float()
    return [answer[place : place + 1, : len(row)].cpu() for place, row in enumerate(ids)]
