"""Batches cut anew: what came as a list of batches leaves as a list of batches of one size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import torch

from nodes.compose import repeated
from nodes.declare import node
from nodes.types import Image, Int, Latent

BatchSize = Annotated[int, Int(1, 4096)]


@node(
    "RebatchImages",
    display="Rebatch Images",
    category="image/batch",
    input_is_list=True,
    returns=(Image,),
    output_is_list=(True,),
)
def rebatch_images(*, images: Image, batch_size: BatchSize = 1) -> Any:
    """Batches of `batch_size` pictures; only pictures of one size share a batch. The last may be smaller."""
    (size,) = _listed(batch_size)
    singles = [image[None] for batch in _listed(images) for image in batch]
    return [torch.cat(group) for group in _grouped(singles, size)]


@node(
    "RebatchLatents",
    display="Rebatch Latents",
    category="model/latent/batch",
    input_is_list=True,
    returns=(Latent,),
    output_is_list=(True,),
)
def rebatch_latents(*, latents: Latent, batch_size: BatchSize = 1) -> Any:
    """Batches of `batch_size` latents; each item keeps its noise and its mask."""
    (size,) = _listed(batch_size)
    items = [item for latent in _listed(latents) for item in _items(latent)]
    groups: list[dict[str, Any]] = []
    for group in _grouped([item["samples"] for item in items], size):
        members, items = items[: len(group)], items[len(group) :]
        joined = members[0] | {
            "samples": torch.cat(group),
            "batch_index": [m["batch_index"] for m in members],
        }
        if any("noise_mask" in member for member in members):
            joined["noise_mask"] = torch.cat([_mask_of(member) for member in members])
        groups.append(joined)
    return groups


def _listed(value: Any) -> list[Any]:
    """With `input_is_list` every input arrives as a list, whatever its annotation says of one item."""
    assert isinstance(value, list), value
    return value


def _grouped(tensors: list[torch.Tensor], size: int) -> Iterator[list[torch.Tensor]]:
    """Runs of equal shapes, at most `size` long."""
    group: list[torch.Tensor] = []
    for tensor in tensors:
        if group and (len(group) == size or tensor.shape != group[0].shape):
            yield group
            group = []
        group.append(tensor)
    if group:
        yield group


def _items(latent: dict[str, Any]) -> Iterator[dict[str, Any]]:
    samples = latent["samples"]
    total = samples.shape[0]
    indexes = list(latent.get("batch_index", range(total)))
    masks = None if latent.get("noise_mask") is None else repeated(latent["noise_mask"], total)
    for place in range(total):
        item = latent | {"samples": samples[place : place + 1], "batch_index": indexes[place]}
        if masks is not None:
            item["noise_mask"] = masks[place : place + 1]
        yield item


def _mask_of(item: dict[str, Any]) -> torch.Tensor:
    """A mask at the size of the latent in pixels; white where there is none, for then all is painted."""
    height, width = (side * 8 for side in item["samples"].shape[-2:])
    if "noise_mask" not in item:
        return torch.ones(1, 1, height, width)
    return torch.nn.functional.interpolate(item["noise_mask"], size=(height, width), mode="bilinear")
