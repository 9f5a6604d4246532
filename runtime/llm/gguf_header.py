"""Lets one load of a GGUF file read its header once.

transformers asks the gguf package for it anew for the configuration, the weights and the tokenizer, and for
the table of tensor names once a module, which together takes most of the time of loading a small model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import gguf


@contextmanager
def read_once() -> Iterator[None]:
    """Other users of the package meanwhile get the same answers, from the same memory."""
    reader, name_map = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader = lru_cache(maxsize=1)(reader)
    gguf.get_tensor_name_map = lru_cache(maxsize=4)(name_map)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = reader, name_map
