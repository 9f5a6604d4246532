"""Phi-4-multimodal: pictures in crops, and sounds, which are projected otherwise beside pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.llm.api import Audio, Image, Media
from runtime.llm.media import Features, Item, Kind
from runtime.llm.processors.base import Processor

_BESIDE_IMAGES = "beside_images"


class _BesideImages(Audio):
    pass


class Phi4Multimodal(Processor):
    model_types = ("phi4_multimodal",)
    kinds = ("image", "audio")
    takes_embeddings = True

    def items(self, media: Sequence[Media]) -> list[Item]:
        if any(isinstance(each, Image) for each in media):
            media = [
                _BesideImages(each.samples, each.rate) if isinstance(each, Audio) else each for each in media
            ]
        return super().items(media)

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        inputs, text = super().preprocess(media)
        if isinstance(media, _BesideImages):
            inputs[_BESIDE_IMAGES] = torch.tensor([True])
        return inputs, text

    def placeholder(self, kind: Kind) -> int:
        config = self.config.vision_config if kind == "image" else self.config.audio_config
        return int(getattr(config, f"{kind}_token_id"))

    @torch.inference_mode()
    def encode(self, network: Any, items: Sequence[Item]) -> list[Features]:
        return [self._encode_one(network, item) for item in items]

    def _encode_one(self, network: Any, item: Item) -> Features:
        """The encoders write into embeddings, so they are given some that hold nothing else."""
        model = network.model
        table = model.embed_tokens.weight
        ids = torch.full((1, item.num_rows), self.placeholder(item.kind), device=table.device)
        blank = table.new_zeros(1, item.num_rows, table.shape[1])
        inputs = {name: each.to(table.device) for name, each in item.inputs.items()}
        if item.kind == "image":
            encoder = model.embed_tokens_extend.image_embed
            # transformers 5.24 says otherwise, and where no patch is left out each saw the earlier ones only.
            for layer in encoder.img_processor.encoder.layers:
                layer.self_attn.is_causal = False
            return Features(encoder(ids, blank, **inputs)[0])
        mode = "vision" if inputs.pop(_BESIDE_IMAGES, None) is not None else "speech"
        made = model.embed_tokens_extend.audio_embed(ids, blank, **inputs, audio_projection_mode=mode)
        return Features(made[0])
