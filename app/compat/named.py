"""Names that packs import and this program cannot serve: they are there, and say so when they are used.

A pack whose other nodes need none of them still loads.
"""

from __future__ import annotations

from typing import Any


class Refused(NotImplementedError):
    """The text names what was used."""


class _Named(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_served_by_nobody" in vars(cls):
            raise Refused(
                f"{cls.__module__}.{cls.__name__} reaches into models, which Treadle runs itself; "
                "docs/compat.md lists what it serves"
            )
        return super().__call__(*args, **kwargs)


def named(module: str, *names: str) -> tuple[Any, ...]:
    """One class for each name. It can be imported, subclassed and compared; calling it raises `Refused`."""
    return tuple(_Named(name, (), {"__module__": module, "_served_by_nobody": True}) for name in names)
