"""A model's tokens as the bytes that they stand for, in the form that llguidance reads. Made when first asked
for: it takes a second.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from llguidance import LLTokenizer

from runtime.llm.text import Codec
from runtime.platform.errors import Unsupported


class Vocabulary:
    """Any thread may ask."""

    def __init__(self, codec: Codec, end_ids: Iterable[int]) -> None:
        self._codec = codec
        self._end_ids = sorted(end_ids)
        self._made: LLTokenizer | None = None
        self._lock = threading.Lock()

    @property
    def tokenizer(self) -> LLTokenizer:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    @property
    def size(self) -> int:
        return self._codec.vocabulary_size

    def make_ready(self) -> None:
        """Called where a second's wait delays nobody, before `bytes_of` is."""
        assert self.tokenizer is not None

    def bytes_of(self, token: int) -> bytes:
        if token >= self.size:
            # outputs of a model beyond its tokenizer's vocabulary stand for nothing
            return b""
        return bytes(self.tokenizer.decode_bytes([token]))

    def _make(self) -> LLTokenizer:
        try:
            return LLTokenizer(
                self._codec.serialised(),
                n_vocab=self.size,
                eos_token=self._end_ids or None,
            )
        except (ValueError, RuntimeError) as error:
            raise Unsupported(
                f"grammars and log probabilities are not supported for {self._codec.name}: {error}"
            ) from error
