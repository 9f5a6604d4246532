"""A missing part of a checkpoint, said as a sentence by the node that needs it."""

from __future__ import annotations

from typing import TypeVar

from nodes.context import NodeInputError

P = TypeVar("P")


def present(part: P | None, kind: str) -> P:
    """`kind` is the socket's name, such as "CLIP"."""
    if part is None:
        raise NodeInputError(
            f"The {kind} input is empty: the checkpoint behind it holds no {kind}. "
            f"Load one with the node that loads a {kind} by itself."
        )
    return part
