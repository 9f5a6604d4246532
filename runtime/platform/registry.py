"""Names to things, with an error that lists what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from runtime.platform.errors import Unsupported

T = TypeVar("T")


class Registry(Generic[T]):
    """`kind` is the word for one entry in the error text, such as "sampler"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        def add(entry: T) -> T:
            assert name not in self._entries, f"two {self.kind}s called {name}"
            self._entries[name] = entry
            return entry

        return add

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise Unsupported(f"unknown {self.kind} '{name}'; supported: {', '.join(self._entries)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
