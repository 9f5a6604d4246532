"""Change the size of pictures, masks and latents, as [B, C, H, W] tensors. It knows no node and no file."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from nodes.context import NodeInputError
from nodes.room import need_room

_PARALLEL = 1.0 - 1e-5


def resized(x: torch.Tensor, width: int, height: int, method: str, crop: str = "disabled") -> torch.Tensor:
    """x [B, C, H, W] -> [B, C, height, width]; `crop` "center" keeps the aspect and cuts what sticks out."""
    if crop == "center":
        x = _center_cut(x, width, height)
    if x.shape[-2:] == (height, width):
        return x.clone()
    need_room(*x.shape[:2], height, width)
    if method == "bislerp":
        return _bislerp(x, width, height)
    if method == "lanczos":
        return _lanczos(x, width, height)
    if method in ("bilinear", "bicubic"):
        return interpolate(x, size=(height, width), mode=method, align_corners=False)
    if method in ("area", "nearest-exact"):
        return interpolate(x, size=(height, width), mode=method)
    raise NodeInputError(
        f"unknown upscale method '{method}'; supported: "
        "nearest-exact, bilinear, area, bicubic, bislerp, lanczos"
    )


def resized_image(
    image: torch.Tensor, width: int, height: int, method: str, crop: str = "disabled"
) -> torch.Tensor:
    """The same for an IMAGE, [B, H, W, C]."""
    return resized(image.movedim(-1, 1), width, height, method, crop).movedim(1, -1).contiguous()


def resized_mask(mask: torch.Tensor, width: int, height: int, method: str = "bilinear") -> torch.Tensor:
    """The same for a MASK, [B, H, W] or [H, W]; the result is [B, height, width]."""
    return resized(mask.reshape(-1, 1, *mask.shape[-2:]), width, height, method)[:, 0]


def size_keeping_aspect(old_width: int, old_height: int, width: int, height: int) -> tuple[int, int]:
    """A zero side follows from the other; two zeros keep the old size."""
    if width == 0 and height == 0:
        return old_width, old_height
    if width == 0:
        return max(1, round(old_width * height / old_height)), height
    if height == 0:
        return width, max(1, round(old_height * width / old_width))
    return width, height


def _center_cut(x: torch.Tensor, width: int, height: int) -> torch.Tensor:
    old_height, old_width = x.shape[-2:]
    old_aspect, aspect = old_width / old_height, width / height
    left = round(old_width * (1 - aspect / old_aspect) / 2) if old_aspect > aspect else 0
    top = round(old_height * (1 - old_aspect / aspect) / 2) if old_aspect < aspect else 0
    return x[..., top : old_height - top, left : old_width - left]


def _lanczos(x: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """Each channel by itself through Pillow, in floats, so that any number of channels works."""

    def one(channel: torch.Tensor) -> torch.Tensor:
        picture = Image.fromarray(channel.to(torch.float32).cpu().numpy())
        return torch.from_numpy(np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS)).copy())

    planes = torch.stack([one(channel) for channel in x.flatten(0, 1)])
    return planes.reshape(*x.shape[:2], height, width).clamp(0, 1).to(x)


def _bislerp(x: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """Spherical interpolation of the channel vectors, along x and then along y."""
    wide = _slerp_along(x.to(torch.float32), 3, width)
    return _slerp_along(wide, 2, height).to(x)


def _slerp_along(x: torch.Tensor, dim: int, length: int) -> torch.Tensor:
    old = x.shape[dim]
    position = ((torch.arange(length, device=x.device) + 0.5) * (old / length) - 0.5).clamp(0, old - 1)
    low = position.floor().long()
    high = (low + 1).clamp(max=old - 1)
    shape = [1, 1, 1, 1]
    shape[dim] = length
    return _slerp(x.index_select(dim, low), x.index_select(dim, high), (position - low).reshape(shape))


def _slerp(a: torch.Tensor, b: torch.Tensor, ratio: torch.Tensor) -> torch.Tensor:
    """a and b [B, C, H, W] -> the way from `a` to `b`: direction on the sphere, length in a straight line."""
    norm_a, norm_b = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
    unit_a = torch.where(norm_a > 0, a / norm_a, torch.zeros_like(a))
    unit_b = torch.where(norm_b > 0, b / norm_b, torch.zeros_like(b))
    cosine = (unit_a * unit_b).sum(1, keepdim=True)
    angle = cosine.clamp(-_PARALLEL, _PARALLEL).acos()
    along = (((1 - ratio) * angle).sin() * unit_a + (ratio * angle).sin() * unit_b) / angle.sin()
    turned = along * (norm_a * (1 - ratio) + norm_b * ratio)
    # Nearly parallel vectors have no stable angle: the same direction keeps `a`, opposite ones go straight.
    turned = torch.where(cosine > _PARALLEL, a, turned)
    return torch.where(cosine < -_PARALLEL, a * (1 - ratio) + b * ratio, turned)
