"""Qwen2-Audio: sounds of up to half a minute, by an encoder of Whisper's kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from transformers.masking_utils import create_bidirectional_mask

from runtime.llm.api import Media
from runtime.llm.media import Features, Item, Kind
from runtime.llm.processors.base import Processor
from runtime.platform.errors import Unsupported


class Qwen2Audio(Processor):
    model_types = ("qwen2_audio",)
    kinds = ("audio",)
    takes_embeddings = True

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        extractor = self._processor.feature_extractor
        if len(self.raw(media)) > extractor.n_samples:
            raise Unsupported(f"a sound lasts {extractor.chunk_length} seconds at most for this model")
        return super().preprocess(media)

    def encoder(self, network: Any, kind: Kind) -> Callable[..., Any]:  # noqa: ARG002
        return partial(_encode, network.model)

    def split(self, output: Any, items: Sequence[Item]) -> list[Features]:
        counts = [item.num_rows for item in items]
        return [Features(rows[:count]) for rows, count in zip(output.rows, counts, strict=True)]


def _encode(
    model: Any, input_features: torch.Tensor, feature_attention_mask: torch.Tensor, **_: Any
) -> SimpleNamespace:
    # [n, mel, frames], [n, frames] -> [n, frames / 4, width], of which each item has its first ones
    tower = model.audio_tower
    lengths, _ = tower._get_feat_extract_output_lengths(feature_attention_mask.sum(-1))
    halved = (input_features.shape[-1] - 2) // 2 + 1
    is_there = torch.arange(halved, device=lengths.device) < lengths[:, None]
    mask = create_bidirectional_mask(
        config=tower.config,
        inputs_embeds=input_features.new_zeros(*is_there.shape, 1),
        attention_mask=is_there.long(),
    )
    hidden = tower(input_features, attention_mask=mask).last_hidden_state
    return SimpleNamespace(rows=model.multi_modal_projector(hidden))
