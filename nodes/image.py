"""Pictures made, scaled, turned, cut and joined. An IMAGE is [B, H, W, C] in 0..1."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.resize import resized_image, size_keeping_aspect
from nodes.room import need_room
from nodes.types import Float, Image, Int, Mask, Options

CATEGORY = "image"
SCALING = f"{CATEGORY}/upscaling"
TRANSFORM = f"{CATEGORY}/transform"
BATCH = f"{CATEGORY}/batch"
ADVANCED = Options({"advanced": True})

ScaleMethod = Literal["nearest-exact", "bilinear", "area", "bicubic", "lanczos"]
Crop = Literal["disabled", "center"]
Side = Annotated[int, Int(0, 16384, 1)]
Extent = Annotated[int, Int(1, 16384, 1)]
Offset = Annotated[int, Int(0, 16384, 1)]
Border = Annotated[int, Int(0, 16384, 8)]
BatchSize = Annotated[int, Int(1, 4096)]


@node("EmptyImage", display="Empty Image", category=CATEGORY)
def empty(
    *,
    width: Extent = 512,
    height: Extent = 512,
    batch_size: BatchSize = 1,
    color: Annotated[int, Int(0, 0xFFFFFF, 1), Options({"display": "color"})] = 0,
) -> Image:
    """One colour, given as 0xRRGGBB."""
    need_room(batch_size, height, width, 3)
    rgb = torch.tensor([color >> 16 & 0xFF, color >> 8 & 0xFF, color & 0xFF]) / 255
    return rgb.expand(batch_size, height, width, 3).clone()


@node("GetImageSize", display="Get Image Size", category=CATEGORY, outputs=("width", "height", "batch_size"))
def size(*, image: Image) -> tuple[int, int, int]:
    """Width, height and number of pictures."""
    return image.shape[2], image.shape[1], image.shape[0]


@node("ImageScale", display="Upscale Image", category=SCALING)
def scale(
    *,
    image: Image,
    upscale_method: ScaleMethod = "nearest-exact",
    width: Side = 512,
    height: Side = 512,
    crop: Crop = "disabled",
) -> Image:
    """To a size in pixels. A side of 0 follows from the other."""
    new = size_keeping_aspect(image.shape[2], image.shape[1], width, height)
    return resized_image(image, *new, upscale_method, crop)


@node("ImageScaleBy", display="Upscale Image By", category=SCALING)
def scale_by(
    *,
    image: Image,
    upscale_method: ScaleMethod = "nearest-exact",
    scale_by: Annotated[float, Float(0.01, 8.0, 0.01)] = 1.0,
) -> Image:
    """By a factor."""
    width, height = max(1, round(image.shape[2] * scale_by)), max(1, round(image.shape[1] * scale_by))
    return resized_image(image, width, height, upscale_method)


@node("ImageScaleToTotalPixels", display="Scale Image to Total Pixels", category=SCALING)
def scale_to_total_pixels(
    *,
    image: Image,
    upscale_method: ScaleMethod = "nearest-exact",
    megapixels: Annotated[float, Float(0.01, 16.0, 0.01)] = 1.0,
    resolution_steps: Annotated[int, Int(1, 256), ADVANCED] = 1,
) -> Image:
    """Keeps the aspect; sides are multiples of `resolution_steps`. A megapixel is 1024 x 1024."""
    factor = (megapixels * 1024 * 1024 / (image.shape[1] * image.shape[2])) ** 0.5
    width, height = (
        max(1, round(side * factor / resolution_steps)) * resolution_steps
        for side in (image.shape[2], image.shape[1])
    )
    return resized_image(image, width, height, upscale_method)


@node("ImageScaleToMaxDimension", display="Scale Image to Max Dimension", category=SCALING)
def scale_to_max_dimension(
    *,
    image: Image,
    upscale_method: Literal["area", "lanczos", "bilinear", "nearest-exact", "bicubic"] = "area",
    largest_size: Side = 512,
) -> Image:
    """Keeps the aspect; the longer side becomes `largest_size`."""
    width, height = image.shape[2], image.shape[1]
    target = (largest_size, 0) if width >= height else (0, largest_size)
    return resized_image(image, *size_keeping_aspect(width, height, *target), upscale_method)


@node("ImageInvert", display="Invert Image Colors", category=f"{CATEGORY}/color")
def invert(*, image: Image) -> Image:
    """Every colour becomes its opposite."""
    return 1.0 - image


@node("ImageBatch", display="Batch Images (DEPRECATED)", category=BATCH, deprecated=True)
def batch(*, image1: Image, image2: Image) -> Image:
    """Two batches as one, the second brought to the size of the first."""
    channels = max(image1.shape[-1], image2.shape[-1])
    one, two = (_with_channels(image, channels) for image in (image1, image2))
    return torch.cat((one, resized_image(two, one.shape[2], one.shape[1], "bilinear", "center")))


@node("ImageFromBatch", display="Get Image from Batch", category=BATCH)
def from_batch(
    *, image: Image, batch_index: Annotated[int, Int(-16384, 16384)] = 0, length: BatchSize = 1
) -> Image:
    """Some pictures of a batch. A negative index counts from the end."""
    total = image.shape[0]
    start = min(max(batch_index + total if batch_index < 0 else batch_index, 0), total - 1)
    return image[start : start + length].clone()


@node("RepeatImageBatch", display="Repeat Image Batch", category=BATCH)
def repeat_batch(*, image: Image, amount: BatchSize = 1) -> Image:
    """The pictures several times over."""
    need_room(amount, *image.shape)
    return image.repeat(amount, 1, 1, 1)


@node("ImageFlip", display="Flip Image", category=TRANSFORM)
def flip(
    *,
    image: Image,
    flip_method: Literal["x-axis: vertically", "y-axis: horizontally"] = "x-axis: vertically",
) -> Image:
    """Upside down, or left to right."""
    return torch.flip(image, dims=(1 if flip_method.startswith("x") else 2,))


@node("ImageRotate", display="Rotate Image", category=TRANSFORM)
def rotate(
    *, image: Image, rotation: Literal["none", "90 degrees", "180 degrees", "270 degrees"] = "none"
) -> Image:
    """Clockwise."""
    turns = ("none", "90 degrees", "180 degrees", "270 degrees").index(rotation)
    return torch.rot90(image, turns, dims=(2, 1))


@node("ImageCrop", display="Crop Image (DEPRECATED)", category=TRANSFORM, deprecated=True)
def crop(*, image: Image, width: Extent = 512, height: Extent = 512, x: Offset = 0, y: Offset = 0) -> Image:
    """A rectangle of the picture."""
    left, top = min(x, image.shape[2] - 1), min(y, image.shape[1] - 1)
    return image[:, top : top + height, left : left + width].clone()


@node("ImagePadForOutpaint", display="Pad Image for Outpainting", category=TRANSFORM)
def pad_for_outpaint(
    *,
    image: Image,
    left: Border = 0,
    top: Border = 0,
    right: Border = 0,
    bottom: Border = 0,
    feathering: Annotated[int, Int(0, 16384, 1), ADVANCED] = 40,
) -> tuple[Image, Mask]:
    """Grey borders, and a mask of them that fades into the picture over `feathering` pixels."""
    total, height, width, channels = image.shape
    need_room(total, top + height + bottom, left + width + right, channels)
    padded = torch.full((total, top + height + bottom, left + width + right, channels), 0.5)
    padded[:, top : top + height, left : left + width] = image
    mask = torch.ones(top + height + bottom, left + width + right)
    fade = _fade(height, width, (left, top, right, bottom), feathering)
    mask[top : top + height, left : left + width] = fade
    return padded, mask[None]


def _fade(height: int, width: int, borders: tuple[int, int, int, int], feathering: int) -> torch.Tensor:
    """[height, width]: the squared nearness to a new border, 0 from `feathering` pixels inwards on."""
    if feathering == 0 or feathering * 2 >= min(height, width):
        return torch.zeros(height, width)
    left, top, right, bottom = borders
    x, y = torch.arange(width).float(), torch.arange(height).float()
    far = torch.tensor(float(max(height, width)))
    from_left = x if left else far.expand(width)
    from_right = width - x if right else far.expand(width)
    from_top = y if top else far.expand(height)
    from_bottom = height - y if bottom else far.expand(height)
    distance = torch.minimum(
        torch.minimum(from_left, from_right)[None], torch.minimum(from_top, from_bottom)[:, None]
    )
    return ((feathering - distance).clamp(min=0) / feathering) ** 2


def _with_channels(image: torch.Tensor, channels: int) -> torch.Tensor:
    """Adds an opaque alpha where one is missing."""
    missing = channels - image.shape[-1]
    if missing not in (0, 1):
        raise NodeInputError(f"Pictures with {image.shape[-1]} and {channels} channels cannot be one batch")
    return torch.nn.functional.pad(image, (0, missing), value=1.0)
