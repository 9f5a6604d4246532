"""Masks made, combined and changed. A MASK is [B, H, W] in 0..1; white (1) is the chosen part."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch.nn.functional import max_pool2d, pad

from nodes.compose import laid_over
from nodes.declare import node
from nodes.room import need_room
from nodes.types import Float, Image, Int, Mask, Options

CATEGORY = "image/mask"

Extent = Annotated[int, Int(1, 16384, 1)]
Offset = Annotated[int, Int(0, 16384, 1)]
Share = Annotated[float, Float(0.0, 1.0, 0.01)]


@node("SolidMask", display="Create Solid Mask", category=CATEGORY)
def solid(*, value: Share = 1.0, width: Extent = 512, height: Extent = 512) -> Mask:
    """A mask of one grey."""
    need_room(1, height, width)
    return torch.full((1, height, width), value)


@node("MaskToImage", display="Convert Mask to Image", category=CATEGORY)
def to_image(*, mask: Mask) -> Image:
    """The mask as a grey picture."""
    return _batched(mask)[..., None].expand(-1, -1, -1, 3).clone()


@node("ImageToMask", display="Convert Image to Mask", category=CATEGORY)
def from_image(*, image: Image, channel: Literal["red", "green", "blue", "alpha"] = "red") -> Mask:
    """One channel of a picture; a picture without alpha is opaque."""
    index = ("red", "green", "blue", "alpha").index(channel)
    if index >= image.shape[-1]:
        return torch.ones_like(image[..., 0])
    return image[..., index].clone()


@node("ImageColorToMask", display="Convert Image Color to Mask", category=CATEGORY)
def from_color(
    *, image: Image, color: Annotated[int, Int(0, 0xFFFFFF, 1), Options({"display": "color"})] = 0
) -> Mask:
    """White where the picture has exactly this colour, given as 0xRRGGBB."""
    rgb = torch.tensor([color >> 16 & 0xFF, color >> 8 & 0xFF, color & 0xFF])
    return ((image[..., :3] * 255).round().clamp(0, 255) == rgb).all(-1).float()


@node("InvertMask", display="Invert Mask", category=CATEGORY)
def invert(*, mask: Mask) -> Mask:
    """White becomes black, and black white."""
    return 1.0 - mask


@node("ThresholdMask", display="Threshold Mask", category=CATEGORY)
def threshold(*, mask: Mask, value: Share = 0.5) -> Mask:
    """White above `value`, black elsewhere."""
    return (mask > value).float()


@node("CropMask", display="Crop Mask", category=CATEGORY)
def crop(*, mask: Mask, x: Offset = 0, y: Offset = 0, width: Extent = 512, height: Extent = 512) -> Mask:
    """A rectangle of the mask."""
    return _batched(mask)[:, y : y + height, x : x + width].clone()


@node("MaskComposite", display="Combine Masks", category=CATEGORY)
def composite(
    *,
    destination: Mask,
    source: Mask,
    x: Offset = 0,
    y: Offset = 0,
    operation: Literal["multiply", "add", "subtract", "and", "or", "xor"] = "multiply",
) -> Mask:
    """Combines `source`, placed at x, y, with what lies under it."""
    below, above = _batched(destination)[:, None], _batched(source)[:, None]
    above = above[..., : max(0, below.shape[2] - y), : max(0, below.shape[3] - x)]
    if above.numel() == 0:
        return _batched(destination).clone()
    under = below[..., y : y + above.shape[2], x : x + above.shape[3]]
    above = above[torch.arange(below.shape[0]) % above.shape[0]]
    return laid_over(below, _combined(under, above, operation), x, y)[:, 0].clamp(0, 1)


@node("FeatherMask", display="Feather Mask", category=CATEGORY)
def feather(*, mask: Mask, left: Offset = 0, top: Offset = 0, right: Offset = 0, bottom: Offset = 0) -> Mask:
    """Fades the mask out towards its edges."""
    result = _batched(mask).clone()
    height, width = result.shape[-2:]
    result *= _ramp(width, left) * _ramp(width, right).flip(0)
    result *= (_ramp(height, top) * _ramp(height, bottom).flip(0))[:, None]
    return result


@node("GrowMask", display="Grow Mask", category=CATEGORY)
def grow(
    *,
    mask: Mask,
    expand: Annotated[int, Int(-16384, 16384, 1)] = 0,
    tapered_corners: Annotated[bool, Options({"advanced": True})] = True,
) -> Mask:
    """Grows white by `expand` pixels, or shrinks it where negative. Tapered corners are not square."""
    result = _batched(mask).clone()
    for _ in range(min(abs(expand), max(result.shape[-2:]))):
        result = (
            _dilated(result, tapered_corners) if expand > 0 else 1 - _dilated(1 - result, tapered_corners)
        )
    return result


def _batched(mask: torch.Tensor) -> torch.Tensor:
    return mask.reshape(-1, *mask.shape[-2:])


def _combined(under: torch.Tensor, above: torch.Tensor, operation: str) -> torch.Tensor:
    match operation:
        case "add":
            return under + above
        case "subtract":
            return under - above
        case "and":
            return (under.round().bool() & above.round().bool()).float()
        case "or":
            return (under.round().bool() | above.round().bool()).float()
        case "xor":
            return (under.round().bool() ^ above.round().bool()).float()
        case _:
            return under * above


def _ramp(length: int, soft: int) -> torch.Tensor:
    """[length]: rises over the first `soft` places and is 1 behind them."""
    soft = min(soft, length)
    return ((torch.arange(length) + 1) / soft).clamp(max=1) if soft else torch.ones(length)


def _dilated(mask: torch.Tensor, tapered: bool) -> torch.Tensor:
    """mask [B, H, W] -> the greatest of each point and its neighbours: four when tapered, else eight."""
    if not tapered:
        return max_pool2d(mask[:, None], 3, stride=1, padding=1)[:, 0]
    x = pad(mask, (1, 1, 1, 1), value=float("-inf"))
    neighbours = (
        x[:, 1:-1, 1:-1],
        x[:, :-2, 1:-1],
        x[:, 2:, 1:-1],
        x[:, 1:-1, :-2],
        x[:, 1:-1, 2:],
    )
    return torch.stack(neighbours).amax(0)
