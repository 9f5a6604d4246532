"""Packs get copies of the tensors on their links, because some of them write into their inputs.

It imports no torch: a tensor is what counts its own changes. What a pack hands on untouched becomes the
original again, so that copies do not fill the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.graph.services import Faces
from app.graph.untouched import count_of, is_counted

# Beyond this a copy costs more than it saves; a change is then noticed afterwards, by app.graph.untouched.
LARGEST_BYTES = 1 << 30


class Copies:
    """The copies of one call. Models come in `faces`, and leave without."""

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        self._copies: dict[int, Any] = {}
        self._originals: dict[int, tuple[Any, Any, int | None]] = {}
        self._kept_alive: list[Any] = []

    def of(self, value: Any) -> Any:
        """Plain dicts, lists and tuples are copied with what they hold; other objects stay what they are."""
        if id(value) in self._copies:
            return self._copies[id(value)]
        if type(value) is dict:
            fresh: Any = self._noted(value, {})
            fresh.update((key, self.of(item)) for key, item in value.items())
        elif type(value) is list:
            fresh = self._noted(value, [])
            fresh.extend(self.of(item) for item in value)
        elif type(value) is tuple:
            fresh = tuple(self.of(item) for item in value)
        elif _is_small_tensor(value):
            fresh = self._noted(value, value.clone())
            self._originals[id(fresh)] = (fresh, value, count_of(fresh))
        else:
            return self._faces.wrapped(value)
        return fresh

    def inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.of(value) for name, value in given.items()}

    def restored(self, value: Any) -> Any:
        """The original of a copy that nobody wrote into; also as an item of a list, tuple or dict."""
        if type(value) in (list, tuple):
            return type(value)(self.restored(item) for item in value)
        if type(value) is dict:
            return {key: self.restored(item) for key, item in value.items()}
        copy, original, count = self._originals.get(id(value), (None, None, None))
        return (
            original
            if copy is value and copy is not None and count_of(copy) == count
            else self._faces.unwrapped(value)
        )

    def _noted(self, value: Any, fresh: Any) -> Any:
        self._copies[id(value)] = fresh
        self._kept_alive.append(value)
        return fresh


def _is_small_tensor(value: Any) -> bool:
    return is_counted(value) and not value.requires_grad and value.nbytes <= LARGEST_BYTES
