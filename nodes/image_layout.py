"""Pictures beside one another and on larger grounds, and the size that a picture of a shape should have."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from nodes.compose import laid_over, repeated
from nodes.declare import node
from nodes.resize import resized_image
from nodes.room import need_room
from nodes.types import Float, Image, Int, Options

CATEGORY = "image/transform"
ADVANCED = Options({"advanced": True})
COLORS = {"white": (1, 1, 1), "black": (0, 0, 0), "red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}

Extent = Annotated[int, Int(1, 16384, 1)]
Ratio = Literal[
    "1:1 (Square)", "2:3 (Portrait Photo)", "3:2 (Photo)", "3:4 (Portrait Standard)", "4:3 (Standard)",
    "9:16 (Portrait Widescreen)", "16:9 (Widescreen)", "21:9 (Ultrawide)",
]  # fmt: skip


@node("ImageStitch", display="Stitch Images", category=CATEGORY)
def stitch(
    *,
    image1: Image,
    direction: Literal["right", "down", "left", "up"] = "right",
    match_image_size: bool = True,
    spacing_width: Annotated[int, Int(0, 1024, 2), ADVANCED] = 0,
    spacing_color: Annotated[Literal["white", "black", "red", "green", "blue"], ADVANCED] = "white",
    image2: Image | None = None,
) -> Image:
    """The second picture beside the first, at its height or width, or centred at its own size."""
    if image2 is None:
        return image1
    is_row = direction in ("right", "left")
    one, two = image1[..., :3], image2[..., :3]
    if match_image_size:
        two = _matched(two, one, is_row)
    length = max(one.shape[1 if is_row else 2], two.shape[1 if is_row else 2])
    total = max(one.shape[0], two.shape[0])
    parts = [_centred(repeated(part, total), length, is_row, spacing_color) for part in (one, two)]
    if direction in ("left", "up"):
        parts.reverse()
    if spacing_width:
        band = (total, length, spacing_width) if is_row else (total, spacing_width, length)
        parts.insert(1, _ground(*band, spacing_color))
    return torch.cat(parts, dim=2 if is_row else 1)


@node("ResizeAndPadImage", display="Resize And Pad Image", category=CATEGORY)
def resize_and_pad(
    *,
    image: Image,
    target_width: Extent = 512,
    target_height: Extent = 512,
    padding_color: Annotated[Literal["white", "black"], ADVANCED] = "white",
    interpolation: Annotated[
        Literal["area", "bicubic", "nearest-exact", "bilinear", "lanczos"], ADVANCED
    ] = "area",
) -> Image:
    """As large as fits into the size with its aspect kept, on a plain ground."""
    total, height, width, _ = image.shape
    factor = min(target_width / width, target_height / height)
    new_width, new_height = max(1, int(width * factor)), max(1, int(height * factor))
    inner = resized_image(image[..., :3], new_width, new_height, interpolation)
    ground = _ground(total, target_height, target_width, padding_color)
    return _placed(ground, inner, (target_width - new_width) // 2, (target_height - new_height) // 2)


@node("ResolutionSelector", display="Resolution Selector", category="utilities", outputs=("width", "height"))
def select_resolution(
    *,
    aspect_ratio: Ratio = "1:1 (Square)",
    megapixels: Annotated[float, Float(0.1, 16.0, 0.1)] = 1.0,
    multiple: Annotated[int, Int(8, 128, 4), ADVANCED] = 8,
) -> tuple[int, int]:
    """A size of about so many megapixels (1024 x 1024) whose sides are multiples of `multiple`."""
    across, down = (int(side) for side in aspect_ratio.split(" ")[0].split(":"))
    unit = (megapixels * 1024 * 1024 / (across * down)) ** 0.5
    width, height = (max(1, round(side * unit / multiple)) * multiple for side in (across, down))
    return width, height


def _matched(image: torch.Tensor, model: torch.Tensor, is_row: bool) -> torch.Tensor:
    """`image` at the height (in a row) or the width of `model`, with its aspect kept."""
    _, height, width, _ = image.shape
    if is_row:
        return resized_image(image, max(1, int(width * model.shape[1] / height)), model.shape[1], "lanczos")
    return resized_image(image, model.shape[2], max(1, int(height * model.shape[2] / width)), "lanczos")


def _centred(image: torch.Tensor, length: int, is_row: bool, color: str) -> torch.Tensor:
    """`image` on a ground that is `length` high (in a row) or wide."""
    total, height, width, _ = image.shape
    if is_row:
        return _placed(_ground(total, length, width, color), image, 0, (length - height) // 2)
    return _placed(_ground(total, height, length, color), image, (length - width) // 2, 0)


def _ground(total: int, height: int, width: int, color: str) -> torch.Tensor:
    need_room(total, height, width, 3)
    return torch.tensor(COLORS[color], dtype=torch.float32).expand(total, height, width, 3)


def _placed(ground: torch.Tensor, image: torch.Tensor, left: int, top: int) -> torch.Tensor:
    return laid_over(ground.movedim(-1, 1), image.movedim(-1, 1), left, top).movedim(1, -1).contiguous()
