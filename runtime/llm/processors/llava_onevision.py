"""LLaVA-OneVision: a picture alone in its request is cut into tiles, one of several is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.llm.api import Image, Media
from runtime.llm.media import Features, Item
from runtime.llm.processors.base import Processor

_COMPANY = "batch_num_images"


class _OneOfSeveral(Image):
    pass


class LlavaOnevision(Processor):
    model_types = ("llava_onevision",)

    def items(self, media: Sequence[Media]) -> list[Item]:
        if sum(isinstance(each, Image) for each in media) > 1:
            media = [_OneOfSeveral(each.pixels) if isinstance(each, Image) else each for each in media]
        return super().items(media)

    def raw(self, media: Media) -> Any:
        pixels = super().raw(media)
        return [pixels, pixels] if isinstance(media, _OneOfSeveral) else pixels

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        inputs, text = super().preprocess(media)
        return {name: each[:1] for name, each in inputs.items()}, text

    def encode(self, network: Any, items: Sequence[Item]) -> list[Features]:
        whole = [item for item in items if _is_whole(item)]
        tiled = [item for item in items if not _is_whole(item)]
        groups = [group for group in (whole, tiled) if group]
        made = {item.hash: each for group in groups for item, each in self._encode_alike(network, group)}
        return [made[item.hash] for item in items]

    def _encode_alike(self, network: Any, items: Sequence[Item]) -> list[tuple[Item, Features]]:
        return list(zip(items, super().encode(network, items), strict=True))

    def stack(self, items: Sequence[Item]) -> dict[str, torch.Tensor]:
        if not _is_whole(items[0]):
            return super().stack(items)
        # The network takes a picture for whole where it has company.
        company = [*items, items[-1]]
        return super().stack(company) | {_COMPANY: torch.tensor([len(company)])}

    def split(self, output: Any, items: Sequence[Item]) -> list[Features]:
        output.pooler_output = output.pooler_output[: len(items)]
        return super().split(output, items)


def _is_whole(item: Item) -> bool:
    return int(item.inputs[_COMPANY]) > 1
