"""Whether a tensor can be made at all, asked before it is made. Swapping or dying helps nobody."""

from __future__ import annotations

from math import prod

import psutil

from nodes.context import NodeInputError

_FLOAT_BYTES = 4
_GIB = 2**30


def need_room(*shape: int) -> None:
    """Refuses a tensor of 32-bit floats that is larger than the memory that is free."""
    size, free = prod(shape) * _FLOAT_BYTES, psutil.virtual_memory().available
    if size > free:
        raise NodeInputError(
            f"A tensor of {'x'.join(map(str, shape))} needs {size / _GIB:.1f} GiB; "
            f"{free / _GIB:.1f} GiB of memory are free"
        )
