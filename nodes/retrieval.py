"""Nodes that find what fits a question, and show where it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from PIL import ImageDraw

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.pictures import as_picture
from nodes.types import Image, Int, Json, Socket

JsonOrText = Annotated[Any, Socket("JSON,STRING")]
Scale = Annotated[int, Int(0, 10_000)]
LineWidth = Annotated[int, Int(1, 64)]
_COLOUR = (230, 60, 60)


@node(
    "NearestVector",
    display="Nearest Vector",
    category="language",
    outputs=("index", "score"),
    input_is_list=True,
    search_aliases=("retrieval", "similarity", "search"),
)
def nearest(*, query: Json, vectors: Json) -> tuple[int, float]:
    """Which of the vectors points most nearly where the query does, counted from 0, and their cosine."""
    wanted, known = query[0], list(vectors)
    if not known or any(len(each) != len(wanted) for each in known):
        raise NodeInputError("There should be vectors, all as long as the query")
    scores = [_cosine(wanted, each) for each in known]
    best = max(range(len(scores)), key=scores.__getitem__)
    return best, scores[best]


@node("SelectFromList", display="Select from List", category="utilities", input_is_list=True)
def select(
    *, values: Annotated[Any, Socket("*")], index: Annotated[int, Int(-100_000, 100_000)] = 0
) -> Annotated[Any, Socket("*")]:
    """One entry of a list, counted from 0, or from the end with negative numbers."""
    if not -len(values) <= index[0] < len(values):  # type: ignore[index]
        raise NodeInputError(f"There is no entry {index[0]}; there are {len(values)}")  # type: ignore[index]
    return values[index[0]]  # type: ignore[index]


@node("DrawBoxes", display="Draw Boxes", category="image", search_aliases=("bounding", "bbox"))
def draw(
    *,
    image: Image,
    boxes: Json,
    scale: Annotated[int, Int(0, 10_000)] = 0,
    width: Annotated[int, Int(1, 64)] = 2,
) -> Image:
    """Boxes [left, top, right, bottom] drawn on every picture, in pixels, or in `scale`-ths of its sides."""
    drawn = [_drawn(each, boxes, scale, width) for each in image]
    return torch.stack(drawn)


def _drawn(image: torch.Tensor, boxes: Any, scale: int, width: int) -> torch.Tensor:
    picture = as_picture(image).convert("RGB")
    pen = ImageDraw.Draw(picture)
    for box in boxes:
        if not isinstance(box, list) or len(box) != 4:
            raise NodeInputError(f"A box should be four numbers, not {box}")
        left, top, right, bottom = (
            float(number) * (side / scale if scale else 1)
            for number, side in zip(box, (picture.width, picture.height) * 2, strict=True)
        )
        corners = (min(left, right), min(top, bottom), max(left, right), max(top, bottom))
        pen.rectangle(corners, outline=_COLOUR, width=width)
    return torch.from_numpy(np.array(picture, np.float32) / 255)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / max(1e-12, math.hypot(*one) * math.hypot(*other))
