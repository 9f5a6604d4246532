"""The requests that one forward answers, as generators: prompts, pictures and latents to be converted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from typing import Any

import torch

from runtime.diffusion.api import Conditioning, DecodeRequest, EncodeImageRequest, EncodeTextRequest
from runtime.diffusion.conditioning_cache import ConditioningCache
from runtime.diffusion.families.base import Autoencoder, TextEncoder
from runtime.platform.errors import Unsupported

PIXELS_TOGETHER = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class TextRow:
    """One prompt for one set of text encoders."""

    encoder: TextEncoder
    texts: tuple[str, ...]

    @property
    def key(self) -> Hashable:
        return "text", id(self.encoder)


@dataclass(frozen=True, slots=True, eq=False)
class ImageRow:
    """One picture [H, W, 3] to encode."""

    autoencoder: Autoencoder
    image: torch.Tensor
    tile: int | None
    overlap: int

    @property
    def key(self) -> Hashable:
        return "encode", id(self.autoencoder), tuple(self.image.shape), self.tile, self.overlap


@dataclass(frozen=True, slots=True, eq=False)
class LatentRow:
    """One latent [C, h, w] to decode."""

    autoencoder: Autoencoder
    latent: torch.Tensor
    tile: int | None
    overlap: int

    @property
    def key(self) -> Hashable:
        return "decode", id(self.autoencoder), tuple(self.latent.shape), self.tile, self.overlap


def encode_text(
    request: EncodeTextRequest, load: Callable[[], TextEncoder], cache: ConditioningCache
) -> Generator[list[TextRow], list[Conditioning], Conditioning]:
    """Weights are loaded only for a prompt that is new."""
    texts = tuple(request.texts)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise Unsupported("a prompt is one text, or one for each text encoder")
    found = cache.get(request.clip, texts)
    if found is None:
        (found,) = yield [TextRow(load(), texts)]
        cache.put(request.clip, texts, found)
    return [[tokens, {**told, **request.extra}] for tokens, told in found]


def encode_image(
    request: EncodeImageRequest, autoencoder: Autoencoder
) -> Generator[list[ImageRow], list[torch.Tensor], torch.Tensor]:
    pixels = request.pixels
    if pixels.ndim != 4 or pixels.shape[-1] < 3 or len(pixels) == 0:
        raise Unsupported(f"a picture is [batch, height, width, 3 or 4], not {list(pixels.shape)}")
    _check_tiles(request.tile, request.overlap)
    latents = yield [ImageRow(autoencoder, image, request.tile, request.overlap) for image in pixels[..., :3]]
    return torch.stack(latents)


def decode(
    request: DecodeRequest, autoencoder: Autoencoder
) -> Generator[list[LatentRow], list[torch.Tensor], torch.Tensor]:
    samples = request.samples
    if samples.ndim != 4 or len(samples) == 0 or samples.shape[1] != autoencoder.channels:
        raise Unsupported(
            f"this VAE decodes latents [batch, {autoencoder.channels}, height, width], "
            f"not {list(samples.shape)}"
        )
    _check_tiles(request.tile, request.overlap)
    images = yield [LatentRow(autoencoder, latent, request.tile, request.overlap) for latent in samples]
    return torch.stack(images)


def _check_tiles(tile: int | None, overlap: int) -> None:
    if tile is not None and (tile < 1 or overlap < 0):
        raise Unsupported(
            f"tiles of {tile} pixels with {overlap} shared; a tile has at least 1 and shares 0 or more"
        )


def rows_together(row: Any, max_rows: int) -> int:
    """How many rows like this one may share a forward. Pictures are bounded by their pixels."""
    if isinstance(row, ImageRow):
        return max(1, min(max_rows, PIXELS_TOGETHER // (row.image.shape[0] * row.image.shape[1])))
    if isinstance(row, LatentRow):
        pixels = row.latent.shape[-1] * row.latent.shape[-2] * row.autoencoder.factor**2
        return max(1, min(max_rows, PIXELS_TOGETHER // pixels))
    return max_rows


def described(row: Any) -> str:
    """A row's size in words, for somebody whose memory it does not fit."""
    match row:
        case TextRow():
            return f"a prompt of {sum(len(text) for text in row.texts)} characters"
        case ImageRow():
            size = f"{row.image.shape[1]} x {row.image.shape[0]} pixels"
            return f"encoding a picture of {size}{_smaller_tiles(row.tile)}"
        case LatentRow():
            size = f"{row.latent.shape[-1]} x {row.latent.shape[-2]} cells"
            return f"decoding a latent of {size}{_smaller_tiles(row.tile)}"
        case _:
            return f"a single latent of {row.x.shape[-1]} x {row.x.shape[-2]} cells with this model"


def _smaller_tiles(tile: int | None) -> str:
    return "; use the tiled node" if tile is None else f" in tiles of {tile} pixels; use smaller ones"
