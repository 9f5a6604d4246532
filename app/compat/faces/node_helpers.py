"""`node_helpers`: small things for conditionings and pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any


def conditioning_set_values(
    conditioning: list[list[Any]], values: Mapping[str, Any] | None = None, append: bool = False
) -> list[list[Any]]:
    """A new conditioning. With `append` a value is added to the list that is there."""
    changed = []
    for entry in conditioning:
        extra = dict(entry[1])
        for key, value in (values or {}).items():
            extra[key] = [*extra[key], *value] if append and extra.get(key) is not None else value
        changed.append([entry[0], extra])
    return changed


def pillow(function: Callable[[Any], Any], argument: Any) -> Any:
    """Once more, with truncated files allowed, where Pillow refuses the file."""
    from PIL import ImageFile, UnidentifiedImageError

    try:
        return function(argument)
    except (OSError, UnidentifiedImageError, ValueError):
        before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, True
        try:
            return function(argument)
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def hasher() -> Callable[..., Any]:
    return hashlib.sha256


def string_to_torch_dtype(string: str) -> Any:
    import torch

    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}.get(string)


def image_alpha_fix(destination: Any, source: Any) -> tuple[Any, Any]:
    """Both with the channels of `destination`; a missing alpha is opaque."""
    import torch

    if destination.shape[-1] < source.shape[-1]:
        source = source[..., : destination.shape[-1]]
    elif destination.shape[-1] > source.shape[-1]:
        destination = torch.nn.functional.pad(destination, (0, 1))
        destination[..., -1] = 1.0
    return destination, source
