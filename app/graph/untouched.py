"""Did a node change its inputs in place? Tensors count their own changes; this compares before and after.

It imports no torch: whatever has a `_version` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The counted objects within some values, and their counts at that time."""

    counts: tuple[tuple[Any, int], ...]

    def changed(self) -> list[Any]:
        return [counted for counted, count in self.counts if count_of(counted) != count]


def seen(value: Any) -> Seen:
    return Seen(tuple((counted, count) for counted, count in _counted(value)))


def holds_any(value: Any, objects: list[Any]) -> bool:
    wanted = {id(one) for one in objects}
    return any(id(counted) in wanted for counted, _ in _counted(value))


def _counted(value: Any) -> Iterator[tuple[Any, int]]:
    todo = [value]
    met: set[int] = set()
    while todo:
        item = todo.pop()
        if id(item) in met:
            continue
        met.add(id(item))
        if isinstance(item, Mapping):
            todo.extend(item.values())
        elif isinstance(item, list | tuple):
            todo.extend(item)
        elif (count := count_of(item)) is not None:
            yield item, count


def is_counted(value: Any) -> bool:
    """A tensor, also one made in inference mode, which keeps no count."""
    return hasattr(type(value), "_version") and hasattr(value, "requires_grad")


def count_of(value: Any) -> int | None:
    try:
        count = getattr(value, "_version", None)
    except RuntimeError:  # a tensor made in inference mode keeps no count
        return None
    return count if isinstance(count, int) else None
