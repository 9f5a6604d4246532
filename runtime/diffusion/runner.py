"""Runs one group of rows on the device. It knows which forward a kind of row means, and no request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.diffusion import batch
from runtime.diffusion.api import Conditioning
from runtime.diffusion.batch import DenoiseRow
from runtime.diffusion.lanes import ImageRow, LatentRow, TextRow
from runtime.diffusion.tiling import decode_latent, encode_image

DeviceRow = DenoiseRow | TextRow | ImageRow | LatentRow


class Runner:
    """`on_forward` hears the number of rows of each denoising forward."""

    def __init__(self, device: str, on_forward: Callable[[int], None] | None) -> None:
        self._device = device
        self._on_forward = on_forward
        self.forwards = 0
        self.rows = 0

    def run(self, rows: Sequence[DeviceRow]) -> list[Any]:
        """One answer a row. All rows are of one key, hence of one kind."""
        kind = type(rows[0])
        answers: dict[type, Callable[[Any], list[Any]]] = {
            DenoiseRow: self._denoise,
            TextRow: self._encode_text,
            ImageRow: self._encode_images,
            LatentRow: self._decode,
        }
        return answers[kind](rows)

    def _denoise(self, rows: Sequence[DenoiseRow]) -> list[torch.Tensor]:
        merged = batch.build(rows)
        answer = merged.network.forward(merged.x, merged.timestep, merged.conds)
        assert answer.shape == merged.x.shape, (answer.shape, merged.x.shape)
        self.forwards += 1
        self.rows += len(rows)
        if self._on_forward is not None:
            self._on_forward(len(rows))
        return list(answer.unbind(0))

    def _encode_text(self, rows: Sequence[TextRow]) -> list[Conditioning]:
        # prompts that arrive together are often the same, such as an empty negative
        distinct = list(dict.fromkeys(row.texts for row in rows))
        encoded = rows[0].encoder.encode(distinct)
        assert len(encoded) == len(distinct), (len(encoded), len(distinct))
        answers = {texts: _owned(found) for texts, found in zip(distinct, encoded, strict=True)}
        return [answers[row.texts] for row in rows]

    def _encode_images(self, rows: Sequence[ImageRow]) -> list[torch.Tensor]:
        first = rows[0]
        pixels = torch.stack([row.image for row in rows]).float().to(self._device)
        return list(encode_image(first.autoencoder, pixels, first.tile, first.overlap).to("cpu", copy=True))

    def _decode(self, rows: Sequence[LatentRow]) -> list[torch.Tensor]:
        first = rows[0]
        latents = torch.stack([row.latent for row in rows]).float().to(self._device)
        return list(decode_latent(first.autoencoder, latents, first.tile, first.overlap).to("cpu", copy=True))


def _owned(conditioning: Conditioning) -> Conditioning:
    """Float32 copies on the CPU: nodes keep conditionings for long and may change them."""

    def own(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to("cpu", torch.float32 if value.is_floating_point() else value.dtype, copy=True)

    return [
        [own(tokens), {name: own(value) for name, value in told.items()}] for tokens, told in conditioning
    ]


def is_out_of_memory(error: BaseException) -> bool:
    """torch has a type for it on accelerators; on a CPU only the text tells."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
