"""ComfyUI's conditionings as regions: what each image is told, where, how strongly, over which levels.

It knows levels and the latent's size; it knows no network and no guidance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F

from runtime.diffusion.api import Conditioning, Control
from runtime.diffusion.families.base import Cond, ControlInput, LatentFormat
from runtime.diffusion.sigmas import NoiseSchedule
from runtime.platform.errors import Unsupported

AREA_UNIT_PX = 8
FEATHER_CELLS = 8

# keys of a conditioning that are understood here; the others go to the family
_READ = frozenset(
    [
        "pooled_output",
        "strength",
        "mask",
        "mask_strength",
        "set_area_to_bounds",
        "area",
        "start_percent",
        "end_percent",
        "control",
        "control_apply_to_uncond",
        "guidance",
        "concat_latent_image",
        "concat_mask",
    ]
)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of latent cells."""

    top: int
    left: int
    height: int
    width: int

    @property
    def cells(self) -> int:
        return self.height * self.width

    def contains(self, other: Box) -> bool:
        return (
            self.top <= other.top
            and self.left <= other.left
            and self.top + self.height >= other.top + other.height
            and self.left + self.width >= other.left + other.width
        )

    def of(self, latent: torch.Tensor) -> torch.Tensor:
        return latent[..., self.top : self.top + self.height, self.left : self.left + self.width]


@dataclass(frozen=True, slots=True)
class Levels:
    """Those from `first` down to `last`, both included."""

    first: float
    last: float

    def contain(self, sigma: float) -> bool:
        return self.last <= sigma <= self.first


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """`conds` has one entry an image. `weight` broadcasts over the box; a number counts everywhere."""

    conds: tuple[Cond, ...]
    box: Box | None
    weight: torch.Tensor | float
    levels: Levels
    controls: tuple[tuple[Levels, tuple[ControlInput, ...]], ...]

    def conds_at(self, sigma: float) -> tuple[Cond, ...]:
        active = [inputs for levels, inputs in self.controls if levels.contain(sigma)]
        if not active:
            return self.conds
        return tuple(
            replace(cond, controls=tuple(inputs[image] for inputs in active))
            for image, cond in enumerate(self.conds)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What a conditioning is read against: the latent batch that it guides, and its model."""

    latent: torch.Tensor
    latent_format: LatentFormat
    schedule: NoiseSchedule
    dtype: torch.dtype

    @property
    def size(self) -> tuple[int, int]:
        return self.latent.shape[-2], self.latent.shape[-1]

    def levels(self, start_percent: float, end_percent: float) -> Levels:
        of = self.schedule.percent_to_sigma
        return Levels(of(start_percent), of(end_percent))


def with_areas_of(own: tuple[Region, ...], others: Sequence[Region]) -> tuple[Region, ...]:
    """One side of the guidance, asked also within each area that the other side has and it has not.

    There it says what its own closest area around says, as strongly as the other side does.
    """
    added: list[Region] = []
    for other in others:
        closest = _closest((*own, *added), other.box) if other.box is not None else None
        if closest is None or closest.box == other.box:
            continue
        conds = tuple(
            replace(cond, concat=there.concat) for cond, there in zip(closest.conds, other.conds, strict=True)
        )
        added.append(replace(other, conds=conds))
    return (*own, *added)


def _closest(candidates: Sequence[Region], box: Box) -> Region | None:
    """The smallest region around a box; one without a box is around everything."""
    around = [region for region in candidates if region.box is None or region.box.contains(box)]
    return min(around, key=lambda region: region.box.cells if region.box else math.inf, default=None)


def regions(conditioning: Conditioning, around: Surroundings) -> tuple[Region, ...]:
    found = []
    for entry in conditioning:
        if len(entry) != 2 or not isinstance(entry[0], torch.Tensor) or not isinstance(entry[1], Mapping):
            raise Unsupported("a conditioning is a list of [tensor, dictionary]; this one is not")
        found.append(_region(entry[0], entry[1], around))
    return tuple(found)


def _region(tokens: torch.Tensor, told: Mapping[str, Any], around: Surroundings) -> Region:
    mask = _mask(told["mask"], around) if told.get("mask") is not None else None
    box = _box(told, mask, around)
    weight: torch.Tensor | float = float(told.get("strength", 1.0))
    if mask is not None:
        weight = weight * float(told.get("mask_strength", 1.0)) * (box.of(mask) if box else mask)
    elif box is not None:
        weight = weight * _feathered(box, around)
    return Region(
        conds=_conds(tokens, told, box, around),
        box=box,
        weight=weight,
        levels=around.levels(float(told.get("start_percent", 0.0)), float(told.get("end_percent", 1.0))),
        controls=tuple(_controls(told.get("control"), box, around)),
    )


def _conds(
    tokens: torch.Tensor, told: Mapping[str, Any], box: Box | None, around: Surroundings
) -> tuple[Cond, ...]:
    # tokens [b, L, D] with b of the conditioning's own; image i takes row i mod b
    if tokens.ndim != 3:
        raise Unsupported(f"a conditioning's tensor is [batch, tokens, width], not {list(tokens.shape)}")
    tokens = tokens.to(around.latent.device, around.dtype)
    pooled = told.get("pooled_output")
    if pooled is not None:
        pooled = pooled.to(around.latent.device, around.dtype)
    concat = _concat(told, around)
    guidance = told.get("guidance")
    extra = {name: value for name, value in told.items() if name not in _READ}
    return tuple(
        Cond(
            tokens=_image(tokens, image),
            pooled=None if pooled is None else _image(pooled, image),
            guidance=None if guidance is None else float(guidance),
            concat=None if concat is None else _image(box.of(concat) if box else concat, image),
            extra=extra,
        )
        for image in range(len(around.latent))
    )


def _image(batch: torch.Tensor, image: int) -> torch.Tensor:
    place = image % len(batch)
    return batch[place : place + 1]


def _mask(mask: torch.Tensor, around: Surroundings) -> torch.Tensor:
    """[1 or B, 1, h, w] in the latent's type."""
    return _fitted(mask.reshape(-1, 1, *mask.shape[-2:]), around)


def _fitted(planes: torch.Tensor, around: Surroundings) -> torch.Tensor:
    """Planes [b, c, H, W] at the latent's size, one for each of its images or one for all."""
    planes = planes.to(around.latent)
    if planes.shape[-2:] != around.size:
        planes = F.interpolate(planes, around.size, mode="bilinear")
    if len(planes) == 1:
        return planes
    return torch.cat([_image(planes, image) for image in range(len(around.latent))])


def _concat(told: Mapping[str, Any], around: Surroundings) -> torch.Tensor | None:
    """What inpainting models see beside the latent: the mask, then the picture without that part."""
    if told.get("concat_latent_image") is None:
        return None
    picture = around.latent_format.to_network(told["concat_latent_image"].to(around.latent))
    mask = told.get("concat_mask")
    if mask is None:
        mask = torch.ones(1, *around.size)
    plane = _mask(mask, around).round()
    if picture.shape[-2:] != around.size:
        raise Unsupported(
            f"the conditioning's picture has {list(picture.shape[-2:])} cells, the latent {list(around.size)}"
        )
    count = max(len(plane), len(picture))
    return torch.cat([plane.expand(count, -1, -1, -1), picture.expand(count, -1, -1, -1)], 1)


def _box(told: Mapping[str, Any], mask: torch.Tensor | None, around: Surroundings) -> Box | None:
    height, width = around.size
    if mask is not None and told.get("set_area_to_bounds"):
        return _bounds(mask)
    area: Sequence[Any] | None = told.get("area")
    if area is None:
        return None
    if area[0] == "percentage":
        parts = [float(part) * side for part, side in zip(area[1:], (height, width) * 2, strict=True)]
        rows, columns, top, left = max(1, round(parts[0])), max(1, round(parts[1])), *map(round, parts[2:])
    else:
        scale = AREA_UNIT_PX / around.latent_format.factor
        rows, columns, top, left = (round(int(part) * scale) for part in area)
    rows, columns = min(rows, height - top), min(columns, width - left)
    if rows <= 0 or columns <= 0:
        raise Unsupported(
            f"a conditioning's area begins at cell {top}, {left}, outside of the latent's {height} x {width}"
        )
    return Box(top, left, rows, columns)


def _bounds(mask: torch.Tensor) -> Box:
    """The rectangle around all that a mask marks; at least eight cells, where there are so many."""
    height, width = mask.shape[-2:]
    marked = mask.abs().amax(dim=(0, 1)) > 0
    if not marked.any():
        return Box(0, 0, min(8, height), min(8, width))
    rows = marked.any(dim=1).nonzero().flatten().tolist()
    columns = marked.any(dim=0).nonzero().flatten().tolist()
    tall = min(max(rows[-1] - rows[0] + 1, 8), height)
    wide = min(max(columns[-1] - columns[0] + 1, 8), width)
    return Box(min(rows[0], height - tall), min(columns[0], width - wide), tall, wide)


def _feathered(box: Box, around: Surroundings) -> torch.Tensor:
    """[1, 1, rows, columns]: 1 inside, less within eight cells of an edge that is not the latent's."""
    height, width = around.size
    rows = _ramp(box.height, box.top > 0, box.top + box.height < height)
    columns = _ramp(box.width, box.left > 0, box.left + box.width < width)
    return (rows[:, None] * columns[None, :])[None, None].to(around.latent)


def _ramp(length: int, fades_in: bool, fades_out: bool) -> torch.Tensor:
    weight = torch.ones(length)
    rising = (torch.arange(min(FEATHER_CELLS, length)) + 1) / FEATHER_CELLS
    if fades_in:
        weight[: len(rising)] *= rising
    if fades_out:
        weight[length - len(rising) :] *= rising.flip(0)
    return weight


def _controls(
    control: Control | None, box: Box | None, around: Surroundings
) -> Iterator[tuple[Levels, tuple[ControlInput, ...]]]:
    """The whole chain, the earliest first; those without strength are left out."""
    if control is None:
        return
    yield from _controls(control.previous, box, around)
    if control.strength == 0:
        return
    rows, columns = (box.height, box.width) if box else around.size
    factor = around.latent_format.factor
    hint = _cropped_to(control.hint.movedim(-1, 1)[:, :3], rows * factor, columns * factor)
    hint = hint.to(around.latent.device, around.dtype)
    yield (
        around.levels(control.start_percent, control.end_percent),
        tuple(
            ControlInput(control.net, _image(hint, image), control.strength)
            for image in range(len(around.latent))
        ),
    )


def _cropped_to(picture: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """[b, 3, H, W] cut about its centre to the wanted proportions, then resized without blending."""
    have_height, have_width = picture.shape[-2:]
    if have_width * height > have_height * width:
        cut = round((have_width - have_height * width / height) / 2)
        picture = picture[..., cut : have_width - cut]
    elif have_height * width > have_width * height:
        cut = round((have_height - have_width * height / width) / 2)
        picture = picture[..., cut : have_height - cut, :]
    return F.interpolate(picture, (height, width), mode="nearest-exact")
