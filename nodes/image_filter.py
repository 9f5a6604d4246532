"""Pictures blended, blurred, sharpened and laid over one another."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch.nn.functional import conv2d, pad

from nodes.compose import laid_over
from nodes.context import NodeInputError
from nodes.declare import node
from nodes.resize import resized_image
from nodes.types import Float, Image, Int, Mask, Options

FILTERS = "image/filters"
COMPOSITING = "image/compositing"
ADVANCED = Options({"advanced": True})

Radius = Annotated[int, Int(1, 31, 1)]
Offset = Annotated[int, Int(0, 16384, 1)]


@node("ImageBlend", display="Blend Images", category=FILTERS)
def blend(
    *,
    image1: Image,
    image2: Image,
    blend_factor: Annotated[float, Float(0.0, 1.0, 0.01)] = 0.5,
    blend_mode: Literal["normal", "multiply", "screen", "overlay", "soft_light", "difference"] = "normal",
) -> Image:
    """`blend_factor` is the share of the blended picture; the rest is the first one."""
    one, two = _same_channels(image1, image2)
    two = resized_image(two, one.shape[2], one.shape[1], "bicubic", "center")
    return (one * (1 - blend_factor) + _blended(one, two, blend_mode) * blend_factor).clamp(0, 1)


@node("ImageBlur", display="Blur Image", category=FILTERS)
def blur(
    *,
    image: Image,
    blur_radius: Radius = 1,
    sigma: Annotated[float, Float(0.1, 10.0, 0.1)] = 1.0,
) -> Image:
    """A Gaussian of standard deviation `sigma`, cut off at `blur_radius` pixels."""
    return _blurred(image, blur_radius, sigma)


@node("ImageSharpen", display="Sharpen Image", category=FILTERS)
def sharpen(
    *,
    image: Image,
    sharpen_radius: Annotated[Radius, ADVANCED] = 1,
    sigma: Annotated[float, Float(0.1, 10.0, 0.01), ADVANCED] = 1.0,
    alpha: Annotated[float, Float(0.0, 5.0, 0.01), ADVANCED] = 1.0,
) -> Image:
    """Adds `alpha` times what a blur takes away."""
    return (image + (image - _blurred(image, sharpen_radius, sigma)) * alpha).clamp(0, 1)


@node("ImageCompositeMasked", display="Image Composite Masked", category=COMPOSITING)
def composite_masked(
    *,
    destination: Image,
    source: Image,
    x: Offset = 0,
    y: Offset = 0,
    resize_source: bool = False,
    mask: Mask | None = None,
) -> Image:
    """Lays one picture over another at x, y, where the mask is white."""
    below, above = (image.movedim(-1, 1) for image in _same_channels(destination, source))
    if resize_source:
        above = torch.nn.functional.interpolate(above, size=below.shape[-2:], mode="bilinear")
    weight = None
    if mask is not None:
        planes = mask.reshape(-1, 1, *mask.shape[-2:])
        weight = torch.nn.functional.interpolate(planes, size=above.shape[-2:], mode="bilinear")
    return laid_over(below, above, x, y, weight).movedim(1, -1).contiguous()


@node("JoinImageWithAlpha", display="Join Image with Alpha", category=COMPOSITING)
def join_alpha(*, image: Image, alpha: Mask) -> Image:
    """A picture with transparency: the mask is white where it is transparent."""
    planes = alpha.reshape(-1, 1, *alpha.shape[-2:])
    at_size = torch.nn.functional.interpolate(planes, size=image.shape[1:3], mode="bilinear")[:, 0]
    total = max(image.shape[0], at_size.shape[0])
    indexes = torch.arange(total)
    opacity = 1 - at_size[indexes % at_size.shape[0]]
    return torch.cat((image[indexes % image.shape[0], ..., :3], opacity[..., None]), dim=-1)


@node("SplitImageWithAlpha", display="Split Image with Alpha", category=COMPOSITING)
def split_alpha(*, image: Image) -> tuple[Image, Mask]:
    """The colours, and a mask that is white where the picture is transparent."""
    opacity = image[..., 3] if image.shape[-1] > 3 else torch.ones_like(image[..., 0])
    return image[..., :3].clone(), 1 - opacity


def _same_channels(one: torch.Tensor, two: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if one.shape[-1] != two.shape[-1] and min(one.shape[-1], two.shape[-1]) < 3:
        raise NodeInputError(f"Pictures with {one.shape[-1]} and {two.shape[-1]} channels do not mix")
    channels = max(one.shape[-1], two.shape[-1])
    return tuple(pad(image, (0, channels - image.shape[-1]), value=1.0) for image in (one, two))  # type: ignore[return-value]


def _blended(one: torch.Tensor, two: torch.Tensor, mode: str) -> torch.Tensor:
    match mode:
        case "multiply":
            return one * two
        case "screen":
            return 1 - (1 - one) * (1 - two)
        case "overlay":
            return torch.where(one <= 0.5, 2 * one * two, 1 - 2 * (1 - one) * (1 - two))
        case "soft_light":
            return _soft_light(one, two)
        case "difference":
            return one - two
        case _:
            return two


def _soft_light(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """The W3C compositing formula: `two` darkens below a half and lightens above it."""
    curve = torch.where(one <= 0.25, ((16 * one - 12) * one + 4) * one, one.clamp(min=0).sqrt())
    return torch.where(two <= 0.5, one - (1 - 2 * two) * one * (1 - one), one + (2 * two - 1) * (curve - one))


def _blurred(image: torch.Tensor, radius: int, sigma: float) -> torch.Tensor:
    """image [B, H, W, C]; borders are mirrored, or repeated where the picture is smaller than the radius."""
    offsets = torch.arange(-radius, radius + 1).float()
    line = torch.exp(-(offsets**2) / (2 * sigma**2))
    line = line / line.sum()
    channels = image.shape[-1]
    mode = "reflect" if min(image.shape[1:3]) > radius else "replicate"
    x = pad(image.movedim(-1, 1), (radius,) * 4, mode=mode)
    x = conv2d(x, line.reshape(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)
    x = conv2d(x, line.reshape(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)
    return x.movedim(1, -1).contiguous()
