"""A websocket's messages as a server puts them on the line: whole and unmasked."""

from __future__ import annotations

import struct

_TEXT, _BINARY = 0x81, 0x82


def framed(message: str | bytes) -> bytes:
    kind, payload = (_BINARY, message) if isinstance(message, bytes) else (_TEXT, message.encode())
    size = len(payload)
    if size < 126:
        head = struct.pack(">BB", kind, size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", kind, 126, size)
    else:
        head = struct.pack(">BBQ", kind, 127, size)
    return head + payload
