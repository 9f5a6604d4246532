"""Fuyu: no tower; patches of the one picture, in front of the text, are projected into the language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from runtime.llm.api import Media
from runtime.llm.media import Features, Item, Kind
from runtime.llm.processors.base import Processor

# It was trained on plain prompts and comes without a template.
_CHAT = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endif %}"
    "{{ '\\n' }}{% endfor %}"
)


class Fuyu(Processor):
    model_types = ("fuyu",)
    max_items = 1

    def __init__(self, processor: Any, config: Any) -> None:
        super().__init__(processor, config)
        processor.chat_template = processor.chat_template or _CHAT

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        made, texts = self._thread_processor()._process_images(
            [self.raw(media)], return_legacy_image_output=False, **self._settings["images_kwargs"]
        )
        return {"pixel_values": made["pixel_values"]}, texts[0]

    def encoder(self, network: Any, kind: Kind) -> Callable[..., Any]:  # noqa: ARG002
        return network.model.get_image_features

    def split(self, output: Any, items: Sequence[Item]) -> list[Features]:
        output.pooler_output = output.last_hidden_state
        return super().split(output, items)

    def output(self, features: Features) -> Any:
        return BaseModelOutputWithPooling(last_hidden_state=features.rows[None])
