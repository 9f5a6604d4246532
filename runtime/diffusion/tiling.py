"""Pictures to latents and back through an autoencoder, whole or in overlapping tiles that are blended.

IMAGE tensors are [B, H, W, C] in 0..1, latents [B, C, h, w] in the autoencoder's own scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from runtime.diffusion.families.base import Autoencoder
from runtime.platform.errors import Unsupported

_PIXELS_AT_ONCE = 1 << 20


def encode_image(
    autoencoder: Autoencoder, image: torch.Tensor, tile: int | None = None, overlap: int = 64
) -> torch.Tensor:
    """The latent of a picture, which is first cropped about its centre to whole cells. Alpha is dropped."""
    factor = autoencoder.factor
    pixels = _crop(image[..., :3], factor).movedim(-1, 1) * 2 - 1
    if tile is None:
        return torch.cat([autoencoder.encode(rows) for rows in _rows(pixels, 1)])
    size, shared = _tile_cells(tile, overlap, factor)
    return _tiled(
        pixels,
        size * factor,
        shared * factor,
        autoencoder.encode,
        lambda length: length // factor,
        autoencoder.channels,
    )


def decode_latent(
    autoencoder: Autoencoder, latent: torch.Tensor, tile: int | None = None, overlap: int = 64
) -> torch.Tensor:
    """The picture of a latent; `tile` and `overlap` are in pixels."""
    factor = autoencoder.factor
    if latent.ndim != 4 or latent.shape[1] != autoencoder.channels:
        raise Unsupported(
            f"this autoencoder decodes latents of {autoencoder.channels} channels [B, C, h, w], "
            f"not {list(latent.shape)}"
        )
    if tile is None:
        pixels = torch.cat([autoencoder.decode(rows) for rows in _rows(latent, factor)])
    else:
        size, shared = _tile_cells(tile, overlap, factor)
        pixels = _tiled(latent, size, shared, autoencoder.decode, lambda length: length * factor, 3)
    return ((pixels + 1) / 2).clamp(0, 1).movedim(1, -1)


def _tiled(
    source: torch.Tensor,
    size: int,
    shared: int,
    convert: Callable[[torch.Tensor], torch.Tensor],
    scaled: Callable[[int], int],
    channels: int,
) -> torch.Tensor:
    """`size` and `shared` count the source's cells; `scaled` turns such a length into the result's."""
    height, width = source.shape[-2:]
    shape = (len(source), channels, scaled(height), scaled(width))
    total = torch.zeros(shape, device=source.device)
    weight = torch.zeros((1, 1, *shape[-2:]), device=source.device)
    for top, bottom in _spans(height, size, shared):
        rows = _ramp(scaled(top), scaled(bottom), shape[-2], scaled(shared)).to(source.device)
        for left, right in _spans(width, size, shared):
            columns = _ramp(scaled(left), scaled(right), shape[-1], scaled(shared)).to(source.device)
            share = rows[:, None] * columns[None, :]
            place = (..., slice(scaled(top), scaled(bottom)), slice(scaled(left), scaled(right)))
            total[place] += convert(source[..., top:bottom, left:right]) * share
            weight[place] += share
    return total / weight


def _spans(length: int, size: int, shared: int) -> Iterator[tuple[int, int]]:
    """Tiles along one axis; the last one is moved inwards rather than cut short."""
    if length <= size:
        yield 0, length
        return
    for start in range(0, length - shared, size - shared):
        first = min(start, length - size)
        yield first, first + size


def _ramp(start: int, end: int, length: int, shared: int) -> torch.Tensor:
    """The weight of a tile along one axis.

    The outer quarter of an overlap counts for nothing, since it misses what lies beyond the tile; the inner
    quarter counts in full. So a tile's answer is used only where it is right, as long as the decoder sees no
    farther than that.
    """
    position = torch.arange(start, end) + 0.5
    weight = torch.ones(end - start)
    if shared and start > 0:
        weight = weight * ((position - start) / shared * 2 - 0.5).clamp(0, 1)
    if shared and end < length:
        weight = weight * ((end - position) / shared * 2 - 0.5).clamp(0, 1)
    return weight


def _tile_cells(tile: int, overlap: int, factor: int) -> tuple[int, int]:
    """Tile and overlap in latent cells; the overlap is at most a quarter of the tile."""
    size = max(tile // factor, 4)
    return size, max(0, min(overlap // factor, size // 4))


def _rows(batch: torch.Tensor, factor: int) -> tuple[torch.Tensor, ...]:
    """The batch in pieces of about a megapixel, so that a long one needs little more memory than one."""
    pixels = batch.shape[-1] * batch.shape[-2] * factor * factor
    return batch.split(max(1, _PIXELS_AT_ONCE // pixels))


def _crop(image: torch.Tensor, factor: int) -> torch.Tensor:
    height, width = image.shape[1] // factor * factor, image.shape[2] // factor * factor
    if height == 0 or width == 0:
        raise Unsupported(
            f"a picture must be at least {factor} pixels wide and high, not {list(image.shape[1:3])}"
        )
    top, left = (image.shape[1] - height) // 2, (image.shape[2] - width) // 2
    return image[:, top : top + height, left : left + width]
