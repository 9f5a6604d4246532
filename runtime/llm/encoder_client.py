"""Asks an encoder process for features, in the preparing threads of a process that has no encoder itself."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from http.client import HTTPException

import torch

from runtime.llm import encoder_wire
from runtime.llm.encoder_wire import Question
from runtime.llm.media import Features, Item
from runtime.platform.errors import Unreachable, Unsupported

_TIMEOUT_S = 120
# An encoder is a neighbour: proxies of the environment are for the world outside.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EncoderClient:
    """`fingerprint` is that of the model `name`. Features come in `dtype` on `device`, and `max_bytes` of
    them are kept, least recently used first to go. Any thread may use it.
    """

    def __init__(
        self, url: str, name: str, fingerprint: str, device: torch.device, dtype: torch.dtype, max_bytes: int
    ) -> None:
        self._url = url.rstrip("/")
        self._name = name
        self._fingerprint = fingerprint
        self._device = device
        self._dtype = dtype
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, Features] = OrderedDict()
        self._num_bytes = 0
        self._lock = threading.Lock()

    def fill(self, items: Sequence[Item]) -> list[Item]:
        """The items with their features. Raises `Unreachable`, or `Unsupported` where it is another model's
        encoder or cannot encode them.
        """
        known = self._known(items)
        missing = {item.hash: item for item in items if item.hash not in known}
        if missing:
            made = self._ask(list(missing.values()))
            known |= dict(zip(missing, made, strict=True))
            self._keep(known)
        return [replace(item, features=known[item.hash]) for item in items]

    def _ask(self, items: Sequence[Item]) -> list[Features]:
        body = encoder_wire.question(Question(self._fingerprint, tuple(items)))
        features = encoder_wire.read_answer(self._post(body))
        counts = [(len(each.rows), item.num_rows) for each, item in zip(features, items, strict=False)]
        if len(features) != len(items) or any(made != wanted for made, wanted in counts):
            raise Unsupported(f"the encoder at {self._url} answers with other features than were asked for")
        return [
            Features(self._moved(each.rows), tuple(self._moved(layer) for layer in each.deep))
            for each in features
        ]

    def _post(self, body: bytes) -> bytes:
        request = urllib.request.Request(
            self._url + encoder_wire.PATH, body, {"Content-Type": "application/octet-stream"}
        )
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise Unsupported(
                f"the encoder at {self._url} refuses {self._name}: {_sentence(error)}"
            ) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Unreachable(
                f"{self._name} sees by the encoder at {self._url}, which does not answer ({reason})"
            ) from error

    def _moved(self, features: torch.Tensor) -> torch.Tensor:
        return features.to(self._device, self._dtype)

    def _known(self, items: Sequence[Item]) -> dict[bytes, Features]:
        with self._lock:
            found = {item.hash: self._kept[item.hash] for item in items if item.hash in self._kept}
            for digest in found:
                self._kept.move_to_end(digest)
        return found

    def _keep(self, known: dict[bytes, Features]) -> None:
        with self._lock:
            for digest, features in known.items():
                if digest not in self._kept:
                    self._kept[digest] = features
                    self._num_bytes += features.num_bytes
            while self._num_bytes > self._max_bytes:
                self._num_bytes -= self._kept.popitem(last=False)[1].num_bytes


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return f"status {error.code}"
