"""Python annotations for sockets. A value's shape is ComfyUI's, so that packs and our nodes can be wired together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Socket:
    """Base of the annotation markers; the class attribute `socket` is the name on the wire."""

    socket: str


def _socket(name: str, doc: str) -> type[Socket]:
    return type(name.title().replace("_", ""), (Socket,), {"socket": name, "__doc__": doc})
